// Package activity stores the audit log in Postgres: who did what, to which vehicle, with which
// outcome.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package activity

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"motorpool/store/groupcommit"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// columns are those of row.
const columns = `id, at, actor_subject, actor_role, actor_agency_id, agency_id, vehicle_id, booking_id, action, parameters,
	outcome, code, command_id, request_id, latency_us, late, note`

// row is a row of the table activity, for reads and writes. As JSON it lacks what is null.
type row struct {
	ID            int64      `json:"-"`
	At            *time.Time `json:"at"`
	ActorSubject  string     `json:"actor_subject"`
	ActorRole     string     `json:"actor_role"`
	ActorAgencyID *int64     `json:"actor_agency_id,omitempty"`
	AgencyID      *int64     `json:"agency_id,omitempty"`
	VehicleID     *int64     `json:"vehicle_id,omitempty"`
	BookingID     *int64     `json:"booking_id,omitempty"`
	Action        string     `json:"action"`
	Parameters    *string    `json:"-"`
	Written       any        `json:"parameters,omitempty"`
	Outcome       string     `json:"outcome"`
	Code          string     `json:"code"`
	CommandID     *uuid.UUID `json:"command_id,omitempty"`
	RequestID     *uuid.UUID `json:"request_id,omitempty"`
	LatencyUS     int64      `json:"latency_us"`
	Late          bool       `json:"late"`
	Note          string     `json:"note"`
}

// fields are where columns go.
func (r *row) fields() []any {
	return []any{
		&r.ID, &r.At, &r.ActorSubject, &r.ActorRole, &r.ActorAgencyID, &r.AgencyID, &r.VehicleID, &r.BookingID, &r.Action, &r.Parameters,
		&r.Outcome, &r.Code, &r.CommandID, &r.RequestID, &r.LatencyUS, &r.Late, &r.Note,
	}
}

func newRow(a telematics.Activity) row {
	return row{
		At: pg.Timestamp(a.At), ActorSubject: a.Actor.Subject, ActorRole: string(a.Actor.Role),
		ActorAgencyID: pg.Nullable(int64(a.Actor.Agency)), AgencyID: pg.Nullable(int64(a.Agency)),
		VehicleID: pg.Nullable(int64(a.Vehicle)), Action: a.Action,
		BookingID: pg.Nullable(a.Booking), Written: encodeParameters(a),
		Outcome: string(a.Outcome), Code: string(a.Code), CommandID: pg.Nullable(a.Command), RequestID: pg.Nullable(a.RequestID),
		LatencyUS: a.Latency.Microseconds(), Late: a.Late, Note: a.Note,
	}
}

// encodeParameters returns the parameters of the request; nil: none.
func encodeParameters(a telematics.Activity) any {
	switch {
	case a.Attention != nil:
		return EncodeAttention(a.Attention)
	case a.Details != nil:
		return a.Details
	}
	return nil
}

// decodeParameters reads the parameters of the request: those of an attention command, else details
// by name.
func (r *row) decodeParameters(a *telematics.Activity) error {
	if r.Parameters == nil {
		return nil
	}
	var details map[string]any
	if err := json.Unmarshal([]byte(*r.Parameters), &details); err != nil {
		return err
	}
	if _, attention := details["signal"]; attention && strings.HasPrefix(r.Action, "command") {
		var err error
		a.Attention, err = DecodeAttention(r.Parameters)
		return err
	}
	a.Details = details
	return nil
}

func (r *row) activity() (telematics.Activity, error) {
	line := telematics.Activity{
		ID: r.ID, At: pg.FromTimestamp(r.At),
		Actor: telematics.Actor{
			Subject: r.ActorSubject, Role: telematics.Role(r.ActorRole), Agency: telematics.AgencyID(pg.Deref(r.ActorAgencyID)),
		},
		Agency: telematics.AgencyID(pg.Deref(r.AgencyID)), Vehicle: telematics.VehicleID(pg.Deref(r.VehicleID)),
		Booking: pg.Deref(r.BookingID), Action: r.Action, Outcome: telematics.Outcome(r.Outcome), Code: telematics.Code(r.Code),
		Command: pg.Deref(r.CommandID), RequestID: pg.Deref(r.RequestID),
		Latency: time.Duration(r.LatencyUS) * time.Microsecond, Late: r.Late, Note: r.Note,
	}
	if err := r.decodeParameters(&line); err != nil {
		return telematics.Activity{}, fmt.Errorf("activity %d: %w", r.ID, err)
	}
	return line, nil
}

// Log is the audit log in Postgres, which is append-only. It is safe for concurrent use.
type Log struct {
	db      *pg.DB
	entries *groupcommit.Batcher[telematics.Activity, struct{}]
}

func New(db *pg.DB) *Log {
	l := &Log{db: db}
	l.entries = pg.NewBatcher(db, l.add)
	return l
}

// Add adds an entry, and blocks until it is committed. On an error it may still have been added.
// The entries of settled commands are added by the statement that settles them.
func (l *Log) Add(ctx context.Context, entry telematics.Activity) error {
	_, err := l.entries.Do(ctx, entry)
	return unavailable.Wrap("add to the audit log", err)
}

func (l *Log) add(ctx context.Context, entries []telematics.Activity) ([]struct{}, error) {
	return make([]struct{}, len(entries)), Insert(ctx, l.db.Prepared, entries...)
}

// Insert adds entries through db, for example in a transaction of the caller.
func Insert(ctx context.Context, db pg.Execer, lines ...telematics.Activity) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := db.ExecContext(ctx, `
		insert into activity (at, actor_subject, actor_role, actor_agency_id, agency_id, vehicle_id, booking_id, action,
			parameters, outcome, code, command_id, request_id, latency_us, late, note)
		select * from json_to_recordset($1) as line (
			at timestamptz, actor_subject text, actor_role text, actor_agency_id bigint, agency_id bigint,
			vehicle_id bigint, booking_id bigint, action text, parameters jsonb, outcome text, code text, command_id uuid,
			request_id uuid, latency_us bigint, late boolean, note text)`,
		pg.JSON(pg.Map(lines, newRow)))
	return err
}

// Activities returns entries, newest first. Their ids are the positions in the page.
func (l *Log) Activities(ctx context.Context, q telematics.ActivityQuery) ([]telematics.Activity, error) {
	if !pg.Searchable(q.Actor, q.Action, string(q.Outcome)) {
		return nil, nil
	}
	order := "id"
	if !q.From.IsZero() && !q.To.IsZero() && q.To.Sub(q.From) <= sortedRange {
		order = "id + 0" // keeps Postgres from scanning the index of ids from the newest entry on
	}
	entries, err := pg.Read(ctx, l.db.Lists, (*row).fields, (*row).activity, `
		select `+columns+` from activity
		where ($1::bigint = 0 or agency_id = $1)
			and ($2::bigint = 0 or vehicle_id = $2)
			and ($3::text = '' or actor_subject = $3)
			and ($4::text = '' or action = $4)
			and ($5::text = '' or outcome = $5)
			and ($6::timestamptz is null or at >= $6)
			and ($7::timestamptz is null or at < $7)
			and ($8::bigint = 0 or id < $8)
			and ($10::bigint = 0 or booking_id = $10)
			and not ($11 and action like '%.read')
		order by `+order+` desc
		limit nullif($9::bigint, 0)`,
		q.Agency, q.Vehicle, q.Actor, q.Action, q.Outcome, pg.Timestamp(q.From), pg.Timestamp(q.To), q.Before, q.Limit, q.Booking,
		q.Changes)
	return entries, unavailable.Wrap("read the audit log", err)
}
