package main

import (
	"context"
	"time"

	auditlog "motorpool/store/activity"
	"motorpool/store/pg"
)

type activity struct {
	List   activityList   `cmd:"" default:"withargs" help:"List audit log entries, newest first."`
	Export exportActivity `cmd:"" help:"Print the audit log, a JSON object on each line. Reads the database directly."`
}

type activityList struct {
	listing
	Vehicle string        `env:"-" placeholder:"N|PLATE" help:"Only of this vehicle (default any)."`
	Booking string        `env:"-" placeholder:"N" help:"Only of this booking (default any)."`
	Actor   string        `env:"-" placeholder:"NAME" help:"Only by this actor (default any)."`
	Action  string        `env:"-" placeholder:"NAME" help:"Only this action, such as command.unlock (default any)."`
	Outcome string        `env:"-" placeholder:"OUTCOME" help:"With this outcome: executed, not_executed, failed or unknown (default any)."`
	Since   time.Duration `env:"-" placeholder:"DURATION" help:"Only of this last period, such as 2h (default any time)."`
}

func (a activityList) Run(ctx context.Context) error {
	query := a.query()
	if err := a.setVehicle(ctx, query, a.Vehicle); err != nil {
		return err
	}
	set(query, "booking_id", a.Booking)
	set(query, "actor", a.Actor)
	set(query, "action", a.Action)
	set(query, "outcome", a.Outcome)
	if a.Since < 0 {
		return badUsage("--since: want a period such as 2h, the last of which is now")
	}
	if a.Since > 0 {
		query.Set("from", time.Now().Add(-a.Since).UTC().Format(time.RFC3339))
	}
	return a.print(ctx, "activity", query, []column{
		"AT at", "ACTOR actor", "ROLE role", "AGENCY agency_id", "VEHICLE vehicle_id", "BOOKING booking_id",
		"ACTION action", "OUTCOME outcome", "CODE code", "NOTE note",
	})
}

type exportActivity struct {
	database
	From string `env:"-" placeholder:"TIME" help:"${activity_from}."`
	To   string `env:"-" placeholder:"TIME" help:"To before this day or instant (default the end)."`
}

func (e exportActivity) Run(ctx context.Context) error {
	var r auditlog.Range
	var err error
	if r.From, err = parseInstant("--from", e.From); err != nil {
		return err
	}
	if r.To, err = parseInstant("--to", e.To); err != nil {
		return err
	}
	if !r.From.IsZero() && !r.To.IsZero() && !r.From.Before(r.To) {
		return badUsage("--from: want a time before that of --to")
	}
	return e.with(func(postgres *pg.DB) error { return auditlog.New(postgres).Export(ctx, unchanged{stdout}, r) })
}

// parseInstant parses a day or an RFC 3339 time. Empty text is the zero time.
func parseInstant(flag, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if t, ok := dayOrInstant(text); ok {
		return t, nil
	}
	return time.Time{}, badUsage("%s: %q is neither a day such as 2026-11-01 nor an instant such as 2026-11-01T12:00:00Z", flag, text)
}

func dayOrInstant(text string) (time.Time, bool) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}
