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

// columns are those of readRow.
const columns = `id, at, actor_subject, actor_role, actor_agency_id, agency_id, vehicle_id, booking_id, action, parameters,
	outcome, code, command_id, request_id, latency_us, late, note`

// readRow is an entry as it is read.
type readRow struct {
	telematics.Activity
	parameters *string
}

// fields are where columns go.
func (r *readRow) fields() []any {
	return []any{
		&r.ID, pg.UTC(&r.At), &r.Actor.Subject, &r.Actor.Role, pg.OrZero(&r.Actor.Agency), pg.OrZero(&r.Agency), pg.OrZero(&r.Vehicle),
		pg.OrZero(&r.Booking), &r.Action, &r.parameters, &r.Outcome, &r.Code, pg.OrZero(&r.Command), pg.OrZero(&r.RequestID),
		pg.Count(&r.Latency, time.Microsecond), &r.Late, &r.Note,
	}
}

// row is an entry as JSON, by the names of its columns. It lacks what is null.
type row struct {
	ID            int64                `json:"id,omitzero"` // only of an export
	At            *time.Time           `json:"at"`
	ActorSubject  string               `json:"actor_subject"`
	ActorRole     telematics.Role      `json:"actor_role"`
	ActorAgencyID telematics.AgencyID  `json:"actor_agency_id,omitzero"`
	AgencyID      telematics.AgencyID  `json:"agency_id,omitzero"`
	VehicleID     telematics.VehicleID `json:"vehicle_id,omitzero"`
	BookingID     int64                `json:"booking_id,omitzero"`
	Action        string               `json:"action"`
	Parameters    any                  `json:"parameters,omitempty"`
	Outcome       telematics.Outcome   `json:"outcome"`
	Code          telematics.Code      `json:"code"`
	CommandID     uuid.UUID            `json:"command_id,omitzero"`
	RequestID     uuid.UUID            `json:"request_id,omitzero"`
	LatencyUS     int64                `json:"latency_us"`
	Late          bool                 `json:"late"`
	Note          string               `json:"note"`
}

func newRow(a telematics.Activity) row {
	return row{
		a.ID, pg.Timestamp(a.At), a.Actor.Subject, a.Actor.Role, a.Actor.Agency, a.Agency, a.Vehicle, a.Booking, a.Action,
		encodeParameters(a), a.Outcome, a.Code, a.Command, a.RequestID, max(0, a.Latency.Microseconds()), a.Late, a.Note,
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

// activity returns the entry with its parameters: those of an attention command, else details by
// name.
func (r *readRow) activity() (a telematics.Activity, err error) {
	a = r.Activity
	if r.parameters == nil {
		return a, nil
	}
	if err = json.Unmarshal([]byte(*r.parameters), &a.Details); err == nil {
		if _, attention := a.Details["signal"]; attention && strings.HasPrefix(a.Action, "command") {
			a.Details = nil
			a.Attention, err = DecodeAttention(r.parameters)
		}
	}
	if err != nil {
		return telematics.Activity{}, fmt.Errorf("activity %d: %w", r.ID, err)
	}
	return a, nil
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
	entries, err := pg.Read(ctx, l.db.Lists, (*readRow).fields, (*readRow).activity, `
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
