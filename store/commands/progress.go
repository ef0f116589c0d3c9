package commands

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

type progressRow struct {
	SentAt     *time.Time `json:"sent_at,omitempty"`
	Attempts   int        `json:"attempts"`
	ReceivedAt *time.Time `json:"received_at,omitempty"`
	// An array of Postgres.
	Retransmitted any `json:"retransmitted,omitempty"`
}

func newProgressRow(p delivery.Progress) progressRow {
	return progressRow{
		SentAt: pg.Timestamp(p.SentAt), Attempts: p.Attempts, ReceivedAt: pg.Timestamp(p.ReceivedAt),
		Retransmitted: encodeRetransmitted(p),
	}
}

type noteRow struct {
	ID uuid.UUID `json:"id"`
	progressRow
}

// StoreProgress implements broker.Commands. It fails where another transaction has locked a
// command; the others are stored.
func (s *Store) StoreProgress(ctx context.Context, notes []delivery.Note) error {
	var failed error
	for batch := range slices.Chunk(notes, s.db.MaxBatch()) {
		failed = errors.Join(failed, s.noteAll(ctx, batch))
	}
	return unavailable.Wrap("note the progress of commands", failed)
}

func (s *Store) noteAll(ctx context.Context, notes []delivery.Note) error {
	for retries := s.db.NewRetries(); ; {
		locked, err := s.note(ctx, notes)
		if err != nil || len(locked) == 0 {
			return err
		}
		if !retries.Next(ctx) {
			return s.db.RowLocked(ctx, "command "+locked[0].String(), "commands", "id", locked[0])
		}
		notes = slices.DeleteFunc(slices.Clone(notes), func(n delivery.Note) bool { return !slices.Contains(locked, n.Command) })
	}
}

// note returns the commands that another transaction has locked.
func (s *Store) note(ctx context.Context, notes []delivery.Note) (locked []telematics.CommandID, err error) {
	rows, ids := make([]noteRow, len(notes)), make([]uuid.UUID, len(notes))
	for i, n := range notes {
		rows[i], ids[i] = noteRow{ID: n.Command, progressRow: newProgressRow(n.Progress)}, n.Command
	}
	err = s.db.Prepared.SelectContext(ctx, &locked, `
		with note as (
			select id, min(sent_at) as sent_at, max(attempts) as attempts, min(received_at) as received_at,
				-- the longest
				(max(cardinality(retransmitted::integer[]) || retransmitted::integer[]) filter (where retransmitted is not null))[2:]
					as retransmitted
			from json_to_recordset($1) as note (id uuid, sent_at timestamptz, attempts integer, received_at timestamptz, retransmitted text)
			group by id
		), locked as (
			select id from commands where id = any ($2) order by id for update skip locked
		), noted as (
			update commands as c
		set state = case
				when c.state in ('accepted', 'sent') and note.received_at is not null then 'received'
				when c.state = 'accepted' and note.sent_at is not null then 'sent'
				else c.state
			end,
			sent_at = coalesce(c.sent_at, note.sent_at),
			attempts = greatest(c.attempts, note.attempts),
			retransmitted_ms = case when cardinality(note.retransmitted) > coalesce(cardinality(c.retransmitted_ms),
				0) then note.retransmitted else c.retransmitted_ms end,
			received_at = coalesce(c.received_at, note.received_at)
			from note join locked using (id)
			where c.id = note.id
		)
		select c.id from (select unnest($2::uuid[]) as id except select id from locked) as other join commands c using (id)
			where c.id = any ($2)`,
		pg.JSON(rows), pq.Array(ids))
	return locked, err
}
