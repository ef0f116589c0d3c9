package commands

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// MoveSettled moves one batch of commands that were settled long ago from the table commands to the
// partition of their month, and reports whether there may be others. Readers find them in either.
// Any number of instances may do so concurrently.
func (s *Store) MoveSettled(ctx context.Context) (more bool, err error) {
	var moved int
	err = s.db.Pool.GetContext(ctx, &moved, `select move_settled_commands(`+pg.Interval(movedAfter)+`, $1)`, movedBatch)
	return moved == movedBatch, unavailable.Wrap("move settled commands", err)
}

// mayHaveMoved reports whether a settlement that had no effect is a late answer to a command that
// may have moved: its id begins with its time. Its age is that when the answer came.
func mayHaveMoved(s *delivery.Settlement) bool {
	return s.Unit != "" && !s.State.IsOpen() && s.Command.Version() == 7 &&
		s.At.Sub(time.Unix(s.Command.Time().UnixTime())) > maybeMovedAfter
}

// settleMoved settles the commands that have moved, where the lifecycle still allows it. They are
// first moved back to the table commands, in the same transaction.
func (s *Store) settleMoved(ctx context.Context, settlements []*delivery.Settlement) ([]*telematics.Command, error) {
	ids, units, states := make([]uuid.UUID, len(settlements)), make([]string, len(settlements)), make([]string, len(settlements))
	for i, late := range settlements {
		ids[i], units[i], states[i] = late.Command, string(late.Unit), string(late.State)
	}
	var moved []uuid.UUID
	err := s.db.Prepared.SelectContext(ctx, &moved, `
		select c.id
		from unnest($1::uuid[], $2::text[], $3::text[]) as answer (id, unit, state)
			join settled_commands c on c.id = answer.id and c.unit = answer.unit
		where c.id = any ($1) and c.state || ' ' || answer.state = any ('`+allowed+`')`,
		pq.Array(ids), pq.Array(units), pq.Array(states))
	if err != nil || len(moved) == 0 {
		return make([]*telematics.Command, len(settlements)), err
	}
	var settled []*telematics.Command
	err = s.db.Prepared.Within(ctx, func(ctx context.Context, tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(ctx, `select return_settled_commands($1)`, pq.Array(moved)); err != nil {
			return err
		}
		settled, err = settleRounds(ctx, tx, settlements, rounds(settlements))
		return err
	})
	return settled, err
}
