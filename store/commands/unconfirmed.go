package commands

import (
	"context"
	"time"

	"github.com/google/uuid"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// unconfirmed is the condition for commands c that a report can still settle or contradict. Its
// first line is that of the index commands_unconfirmed. A later command of the lane may have caused
// what is reported since.
const unconfirmed = `c.state = 'unknown' and c.assurance & 224 = 32
	and c.sent_at is not null
	and not exists (select from commands later where later.vehicle_id = c.vehicle_id and later.lane = c.lane and later.seq > c.seq)`

// Unconfirmed returns up to limit commands with a deadline after since that ended as unknown, and
// that a report can still settle or contradict. They are ordered by deadline and id, and come after
// the given one.
func (s *Store) Unconfirmed(ctx context.Context, since time.Time, behind telematics.Command, limit int) ([]telematics.Command, error) {
	if behind.Deadline.Before(since) {
		behind.Deadline, behind.ID = since, uuid.Max
	}
	commands, err := selectCommands(ctx, s.db.Prepared, `
		select `+commandColumns+` from commands c
		where `+unconfirmed+` and (deadline, id) > ($1, $2)
		order by deadline, id
		limit $3`,
		pg.Timestamp(behind.Deadline), behind.ID, limit)
	return commands, unavailable.Wrap("read unconfirmed commands", err)
}

// Conclude applies to an unconfirmed command what a report has shown: Succeeded settles it as a
// late answer does, and Unknown records that the report contradicts it. It reports false, without a
// command, where the command is not unconfirmed any more. The report must have been read before the
// call: then the absence of a later command shows that none has caused it.
func (s *Store) Conclude(ctx context.Context, finding delivery.Settlement) (*telematics.Command, bool, error) {
	if finding.State == telematics.Unknown {
		return s.contradict(ctx, finding.Command)
	}
	found, err := selectCommands(ctx, s.db.Prepared, `select `+commandColumns+` from commands c where id = $1 and `+unconfirmed, finding.Command)
	if err != nil || len(found) == 0 {
		return nil, false, unavailable.Wrap("read an unconfirmed command", err)
	}
	return s.Settle(ctx, finding)
}

func (s *Store) contradict(ctx context.Context, id telematics.CommandID) (*telematics.Command, bool, error) {
	changed, err := selectCommands(ctx, s.db.Prepared, `
		update commands c set assurance = assurance | 128
		where id = $1 and `+unconfirmed+`
		returning `+commandColumns, id)
	if err != nil || len(changed) == 0 {
		return nil, false, unavailable.Wrap("record that a command was contradicted", err)
	}
	return &changed[0], true, nil
}
