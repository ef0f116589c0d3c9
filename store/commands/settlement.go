package commands

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Settle implements broker.Commands [LAW-3] [LAW-9]. A settlement that was applied before is
// returned again, without an entry: a driver retries one whose reply was lost.
func (s *Store) Settle(ctx context.Context, settlement delivery.Settlement) (*telematics.Command, bool, error) {
	done, err := s.settlements.Do(ctx, &settlement)
	for retries := s.db.NewRetries(); err == nil && done.locked; done, err = s.settlements.Do(ctx, &settlement) {
		if !retries.Next(ctx) {
			err = s.db.RowLocked(ctx, "command "+settlement.Command.String(), "commands", "id", settlement.Command)
			break
		}
	}
	settled := done.command
	if err == nil && settled == nil && mayHaveMoved(&settlement) {
		settled, err = s.lateSettlements.Do(ctx, &settlement)
	}
	return settled, settled != nil, unavailable.Wrap("settle command", cmp.Or(err, done.err))
}

// settled is the result of a settlement.
type settled struct {
	command *telematics.Command // nil: it had no effect
	locked  bool                // another transaction has locked the command
	err     error               // of the read that tells which of these
}

// settleUnlocked is settle, and tells which commands another transaction has locked: those that
// the settlement did not change, and that it may still change.
func (s *Store) settleUnlocked(ctx context.Context, settlements []*delivery.Settlement) ([]settled, error) {
	commands, err := s.settle(ctx, settlements)
	if err != nil {
		return nil, err
	}
	results := make([]settled, len(settlements))
	var rows [][]any
	for i, c := range commands {
		results[i].command = c
		if c == nil {
			rows = append(rows, settlementRow(settlements[i]))
		}
	}
	if len(rows) == 0 {
		return results, nil
	}
	left, err := selectCommands(ctx, s.db.Prepared, durable(`
		with `+settlementColumns.Many()+`
		select `+commandColumns+` from (
			select c.* from commands c join settlement s using (id)
			where c.id = any ($1) and (`+mayChange("c.state")+` or `+hasChanged+`)
		) as c`), pg.Arrays(rows)...)
	for i, s := range settlements {
		at := slices.IndexFunc(left, func(c telematics.Command) bool { return c.ID == s.Command })
		switch {
		case results[i].command != nil:
		case err != nil || at < 0:
			results[i].err = err
		case left[at].State.MayBecome(s.State):
			results[i].locked = true
		case hasBecome(&left[at], s):
			results[i].command = &left[at]
		}
	}
	return results, nil
}

// mayChange is the SQL of whether a settlement s may change a command c that has the given state.
func mayChange(state string) string {
	return `s.unit in ('', c.unit) and ` + state + ` || ' ' || s.state = any ('` + allowed + `')`
}

// hasChanged is the SQL of whether a settlement s has changed a command c.
const hasChanged = `s.unit in ('', c.unit) and s.state = c.state and s.at in (c.received_at, c.completed_at)`

// hasBecome is hasChanged for one settlement of a batch: the statement also returns a command that
// another settlement of the batch may change.
func hasBecome(c *telematics.Command, s *delivery.Settlement) bool {
	at := pg.FromTimestamp(pg.Timestamp(s.At))
	return c.State == s.State && (at.Equal(c.ReceivedAt) || at.Equal(c.Completed))
}

// settle applies settlements in their order, and returns the changed commands, nil where none
// changed. One statement can change a row only once, so a further settlement of a command waits
// for the next round. All rounds are one transaction: a batch that fails must have done nothing.
func (s *Store) settle(ctx context.Context, settlements []*delivery.Settlement) ([]*telematics.Command, error) {
	split := rounds(settlements)
	if len(split) == 1 {
		return settleRounds(ctx, s.db.Prepared, settlements, split)
	}
	var settled []*telematics.Command
	err := s.db.Prepared.Within(ctx, func(ctx context.Context, tx *sqlx.Tx) (err error) {
		settled, err = settleRounds(ctx, tx, settlements, split)
		return err
	})
	return settled, err
}

func settleRounds(ctx context.Context, db pg.Querier, settlements []*delivery.Settlement, split [][]int) ([]*telematics.Command, error) {
	settled := make([]*telematics.Command, len(settlements))
	for _, round := range split {
		of := pg.Map(round, func(at int) *delivery.Settlement { return settlements[at] })
		changed, err := settleEach(ctx, db, of)
		if err != nil {
			return nil, err
		}
		for _, at := range round {
			settled[at] = changed[settlements[at].Command]
		}
	}
	return settled, nil
}

// rounds splits settlements, by their indexes, so that each round has a command once.
func rounds(settlements []*delivery.Settlement) [][]int {
	var split [][]int
	met := map[telematics.CommandID]int{}
	for i, s := range settlements {
		round := met[s.Command]
		met[s.Command]++
		if round == len(split) {
			split = append(split, nil)
		}
		split[round] = append(split[round], i)
	}
	return split
}

// settlementColumns are what a settlement stores.
var settlementColumns = pg.RowSet{Name: "settlement", Columns: []string{
	"id uuid", "unit text", "state text", "reason text", "detail text", "reported json", "at timestamptz",
	"sent_at timestamptz", "attempts integer", "received_at timestamptz", "retransmitted text",
	"final boolean", // the command is not open any more
	"outcome text", "code text",
}}

// settlementRow returns the values of settlementColumns.
func settlementRow(s *delivery.Settlement) []any {
	var reported any
	if s.Reported != nil {
		reported = string(encodeReported(s.Reported))
	}
	return []any{
		s.Command, string(s.Unit), string(s.State), s.Reason, s.Detail, reported, pg.Timestamp(s.At),
		pg.Timestamp(s.SentAt), int64(s.Attempts), pg.Timestamp(s.ReceivedAt), encodeRetransmitted(s.Progress),
		!s.State.IsOpen(),
		string(s.State.Outcome()), string(s.Code()),
	}
}

// allowed lists the transitions of the lifecycle, as an array of Postgres: a state, a space, and
// a state that may follow [LAW-3].
var allowed = transitions()

func transitions() string {
	var pairs []string
	for _, next := range telematics.States {
		for _, state := range next.Before() {
			pairs = append(pairs, string(state)+" "+string(next))
		}
	}
	return `{"` + strings.Join(pairs, `","`) + `"}`
}

// settleEach applies settlements of different commands and returns the changed commands. It
// passes over rows that another transaction has locked, so that no command waits for another. The
// rows are locked in the order of their ids.
func settleEach(
	ctx context.Context, db pg.Querier, settlements []*delivery.Settlement,
) (map[telematics.CommandID]*telematics.Command, error) {
	kind := settleKind{one: len(settlements) == 1, known: true}
	rows := make([][]any, len(settlements))
	for i, s := range settlements {
		rows[i] = settlementRow(s)
		kind.known = kind.known && s.Known != nil
		kind.frees = kind.frees || s.State.Outcome() == telematics.NotExecuted
	}
	if kind.known {
		return settleKnown(ctx, db, kind, rows, settlements)
	}
	commands, err := selectCommands(ctx, db, settleStatements[kind], pg.Parameters(rows)...)
	changed := make(map[telematics.CommandID]*telematics.Command, len(commands))
	for i := range commands {
		changed[commands[i].ID] = &commands[i]
	}
	return changed, err
}

func settleKnown(
	ctx context.Context, db pg.Querier, kind settleKind, rows [][]any, settlements []*delivery.Settlement,
) (map[telematics.CommandID]*telematics.Command, error) {
	byID := make(map[telematics.CommandID]*delivery.Settlement, len(settlements))
	for _, s := range settlements {
		byID[s.Command] = s
	}
	changed := make(map[telematics.CommandID]*telematics.Command, len(settlements))
	fields := func(r *commandRow) []any {
		return []any{&r.ID, &r.Late, &r.Overruled, &r.Attempts, pg.UTC(&r.SentAt), pg.UTC(&r.ReceivedAt), pg.UTC(&r.Completed),
			pg.UTC(&r.BestEffort.AnswerBy), &r.retransmitted, &r.reported}
	}
	_, err := pg.Read(ctx, db, fields, func(r *commandRow) (c *telematics.Command, err error) {
		c, err = r.complete(byID[r.ID])
		changed[r.ID] = c
		return c, err
	}, settleStatements[kind], pg.Parameters(rows)...)
	return changed, err
}

// complete returns the known command as it is now: the row has only what a settlement may have
// changed to values that are not in it.
func (r *commandRow) complete(s *delivery.Settlement) (*telematics.Command, error) {
	c := *s.Known
	c.Key, c.Protocol, c.Installation, c.Version = nil, "", nil, 0 // as it is read
	c.State, c.Reason, c.Detail, c.Reported = s.State, s.Reason, s.Detail, s.Reported
	c.Late, c.Overruled, c.Attempts = r.Late, r.Overruled, r.Attempts
	c.SentAt, c.ReceivedAt, c.Completed, c.BestEffort.AnswerBy = r.SentAt, r.ReceivedAt, r.Completed, r.BestEffort.AnswerBy
	c.Retransmitted = decodeRetransmitted(r.retransmitted, c.SentAt)
	if c.Reported != nil {
		return &c, nil
	}
	var err error
	if c.Reported, err = decodeReported(r.reported); err != nil {
		return nil, fmt.Errorf("command %s: %w", c.ID, err)
	}
	return &c, nil
}

// settleKind selects the parts of a statement that settles. A part that does nothing would cost
// time: Postgres sets up each part of a plan.
type settleKind struct {
	one bool // command
	// The statement returns only columns that may have changed, and are not in the settlements:
	// most others take longer to read than to write.
	known bool
	frees bool // some commands were not executed, which frees their keys
}

var settleStatements = func() map[settleKind]string {
	statements := map[settleKind]string{}
	for _, one := range []bool{false, true} {
		for _, known := range []bool{false, true} {
			for _, frees := range []bool{false, true} {
				kind := settleKind{one: one, known: known, frees: frees}
				statements[kind] = kind.statement()
			}
		}
	}
	return statements
}()

func (k settleKind) statement() string {
	source := settlementColumns.Many() + lockMany
	if k.one {
		source = settlementColumns.One() + lockOne
	}
	reported := `s.reported`
	if !k.known {
		reported = `case when s.reported is not null and ` + notMoved + ` then s.reported end`
	}
	text := `with ` + source + `, settled as (
		update commands as c
		set state = s.state, reason = s.reason, detail = s.detail,
			reported = coalesce(` + reported + `, c.reported),
			late = c.state in ('unknown', 'expired', 'rejected'),
			overruled = c.overruled or c.state = 'rejected',
			sent_at = coalesce(c.sent_at, s.sent_at),
			-- A sweeper does not know whether the owner has published it; an answer says that it has.
			attempts = greatest(c.attempts, s.attempts, (c.state = 'unknown')::integer),
			retransmitted_ms = coalesce(s.retransmitted::integer[], c.retransmitted_ms),
			received_at = coalesce(c.received_at, case when s.state = 'received' then s.at else s.received_at end),
			completed_at = case when s.final then s.at else c.completed_at end,
			answer_by = case when s.unit = '' or not s.final then c.answer_by end
		from settlement as s join locked using (id)
		where c.id = s.id and ` + mayChange("locked.state") + `
		returning c.*, s.final, s.outcome, s.code, s.reported is not null as reports
	)` + writeLines
	if k.frees {
		text += freeKeys
	}
	if k.known {
		return text + returnChanged
	}
	return text + returnAll
}

// notMoved is the SQL of whether the unit of a command c is still in its vehicle, and that with its
// agency: else a report that comes now tells one agency where another's vehicle is. A command that
// the caller knows was ordered less than a minute ago.
const notMoved = `exists (select from units u join vehicles v on v.id = u.vehicle_id
	where u.serial = c.unit and v.id = c.vehicle_id and v.agency_id = c.agency_id)`

const (
	lockMany = `, locked as (
		select id, state from commands where id = any ($1) order by id for update skip locked
	)`
	lockOne = `, locked as (
		select id, state from commands where id = $1 for update skip locked
	)`

	writeLines = `, lines as (
		insert into activity (at, actor_subject, actor_role, actor_agency_id, agency_id, vehicle_id, booking_id, action,
			parameters, outcome, code, command_id, request_id, latency_us, late)
		select completed_at, actor_subject, actor_role, actor_agency_id, nullif(agency_id, 0), vehicle_id, booking_id,
			'command.' || action, parameters, outcome, code, id, request_id,
			greatest(0, extract(epoch from completed_at - requested_at)) * 1000000, late
		from settled
		where final
		order by completed_at, id
	)`

	freeKeys = `, freed as (
		delete from idempotency_keys as k using settled
		where k.command_id = settled.id and settled.outcome = '` + string(telematics.NotExecuted) + `'
	)`

	returnAll     = ` select ` + commandColumns + ` from settled`
	returnChanged = ` select id, late, overruled, attempts, sent_at, received_at, completed_at, answer_by, retransmitted_ms,
		case when not reports then reported end as reported from settled`
)
