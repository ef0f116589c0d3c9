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

// firstBit is the first bit of the column assurance that stands for no promise, but for a field of
// Command.BestEffort.
const firstBit = 5

func encodeAssurance(c *telematics.Command) int64 {
	bits := c.Assurance.Bits()
	for i, holds := range [...]bool{c.BestEffort.ByReport, c.BestEffort.ReportedBefore, c.BestEffort.Contradicted} {
		if holds {
			bits |= 1 << (firstBit + i)
		}
	}
	return int64(bits)
}

func decodeBestEffort(column *int16, answerBy time.Time) telematics.BestEffort {
	has := func(i int) bool { return column != nil && *column&(1<<(firstBit+i)) != 0 }
	return telematics.BestEffort{AnswerBy: answerBy, ByReport: has(0), ReportedBefore: has(1), Contradicted: has(2)}
}

// AwaitingAnswer implements besteffort.Commands.
func (s *Store) AwaitingAnswer(ctx context.Context, unit telematics.Unit) (telematics.Command, bool, error) {
	found, err := selectCommands(
		ctx, s.db.Prepared, `select `+commandColumns+` from commands where id = command_awaiting_answer($1)`,
		string(unit),
	)
	if err != nil || len(found) == 0 {
		return telematics.Command{}, false, unavailable.Wrap("read the command that awaits an answer", err)
	}
	return found[0], true, nil
}

// AnsweredBefore implements besteffort.Commands.
func (s *Store) AnsweredBefore(ctx context.Context, c telematics.Command, limit int) ([]telematics.Command, error) {
	found, err := selectCommands(ctx, s.db.Prepared, `
		select `+commandColumns+` from commands
		where unit = $1 and lane = 'unit' and seq < $2 and (received_at is not null or state in ('succeeded', 'rejected', 'failed'))
		order by seq desc
		limit $3`,
		string(c.Unit), c.Seq, limit)
	return found, unavailable.Wrap("read the commands that were answered before", err)
}

// unconfirmed is the condition for commands c that a report can still settle or contradict. Its
// first line is that of the index commands_unconfirmed. A later command of the lane may have caused
// what is reported since.
const unconfirmed = `c.state = 'unknown' and c.assurance & 224 = 32
	and c.sent_at is not null
	and not exists (select from commands later where later.vehicle_id = c.vehicle_id and later.lane = c.lane and later.seq > c.seq)`

// Unconfirmed implements besteffort.Commands.
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

// Conclude implements besteffort.Commands. The report must have been read before the call: then the
// absence of a later command shows that none has caused it.
func (s *Store) Conclude(ctx context.Context, finding delivery.Settlement) (*telematics.Command, bool, error) {
	query := `select ` + commandColumns + ` from commands c where id = $1 and ` + unconfirmed
	if finding.State == telematics.Unknown {
		query = `update commands c set assurance = assurance | 128 where id = $1 and ` + unconfirmed + ` returning ` + commandColumns
	}
	found, err := selectCommands(ctx, s.db.Prepared, query, finding.Command)
	switch {
	case err != nil || len(found) == 0:
		return nil, false, unavailable.Wrap("conclude an unconfirmed command", err)
	case finding.State == telematics.Unknown:
		return &found[0], true, nil
	}
	return s.Settle(ctx, finding)
}
