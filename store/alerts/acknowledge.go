package alerts

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"motorpool/alerts"
	"motorpool/store/activity"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Acknowledge implements httpapi.Alerts. Units report no end of their alarms: to acknowledge one
// clears it.
func (s *Store) Acknowledge(
	ctx context.Context, id uuid.UUID, agency telematics.AgencyID, note string, by telematics.Author,
) (a alerts.Alert, err error) {
	var events []telematics.Event
	err = s.DB.Within(ctx, func(tx *sqlx.Tx) error {
		var cleared []bool
		err := tx.SelectContext(ctx, &cleared, `
			with before as materialized (
				select id, cleared_at from alerts
				where id = $1 and ($2::bigint = 0 or agency_id = $2) and no is not null and seen_at is null
				for update
			)
			update alerts a
			set seen_by = $3, seen_at = `+at(5)+`, seen_note = $4,
				cleared_at = case when a.rule = '`+string(alerts.UnitAlarm)+`' then coalesce(a.cleared_at, `+at(5)+`) else a.cleared_at end
			from before where a.id = before.id
			returning a.cleared_at is distinct from before.cleared_at`, id, agency, by.Subject, note, s.now)
		if err != nil {
			return err
		}
		found, err := read(ctx, tx, ` and a.id = $1 and ($2::bigint = 0 or a.agency_id = $2)`, id, agency)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return alerts.NoSuchAlert(id)
		}
		a = found[0]
		if len(cleared) == 0 {
			return nil
		}
		if events = append(events, a.Event(alerts.Acknowledged, time.Now())); cleared[0] {
			events = append(events, a.Event(alerts.HasCleared, time.Now()))
		}
		return activity.Insert(ctx, tx, telematics.Activity{
			At: a.Seen.At, Actor: by.Actor, Agency: a.Agency, Vehicle: a.Vehicle, Booking: a.Booking, Action: alerts.Acknowledge,
			Outcome:   telematics.Executed,
			RequestID: by.RequestID, Note: note, Details: map[string]any{"alert_id": id.String(), "rule": string(a.Rule)},
		})
	})
	s.publish(events, err)
	if err != nil {
		return alerts.Alert{}, unavailable.Wrap("acknowledge an alert", err)
	}
	return a, nil
}
