package store

import (
	"context"
	"strings"

	"motorpool/telematics"
)

// settled is a command after a settlement, if it took effect.
type settled struct {
	command telematics.Command
	ok      bool
}

// Settle applies what the lifecycle allows, and adds the line of the history that
// tells of it, in one step [LAW-3] [LAW-9]. It reports false, with the zero command,
// where the command is unknown, was sent to another unit, or may not enter the state
// any more.
func (p *Postgres) Settle(ctx context.Context, s telematics.Settlement) (telematics.Command, bool, error) {
	result, err := p.settlements.do(ctx, s)
	return result.command, result.ok, wrap("settle command", err)
}

// settle applies settlements in their order. One statement sees a row once, so a
// command that comes again waits for the next round. All rounds are one transaction:
// a batch that fails must have done nothing.
func (p *Postgres) settle(ctx context.Context, settlements []telematics.Settlement) ([]settled, error) {
	split := rounds(settlements)
	if len(split) == 1 {
		return settleRounds(ctx, p.commands, settlements, split)
	}
	var results []settled
	err := p.commands.within(ctx, func(ctx context.Context, tx *planned) (err error) {
		results, err = settleRounds(ctx, tx, settlements, split)
		return err
	})
	return results, err
}

func settleRounds(ctx context.Context, db querier, settlements []telematics.Settlement, split [][]int) ([]settled, error) {
	results := make([]settled, len(settlements))
	for _, round := range split {
		kind := settleKind{one: len(round) == 1, known: true}
		rows := make([][]any, len(round))
		for i, at := range round {
			s := &settlements[at]
			rows[i] = settlementRow(s)
			kind.known = kind.known && s.Known != nil
			kind.frees = kind.frees || s.State.Outcome() == telematics.NotExecuted
		}
		commands, err := settleEach(ctx, db, kind, rows)
		if err != nil {
			return nil, err
		}
		for _, at := range round {
			s := settlements[at]
			results[at].command, results[at].ok = commands[s.Command]
			if kind.known && results[at].ok {
				results[at].command = complete(s, results[at].command)
			}
		}
	}
	return results, nil
}

// rounds splits settlements, by their places, so that each round names a command once.
func rounds(settlements []telematics.Settlement) [][]int {
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

// settlementColumns are what a settlement writes down.
var settlementColumns = given{"settlement", []string{
	"id uuid", "unit text", "state text", "reason text", "detail text", "reported json", "at timestamptz",
	"sent_at timestamptz", "attempts integer", "received_at timestamptz",
	"final boolean", // the command is not open any more
	"outcome text", "code text",
}}

// settlementRow returns the values of settlementColumns.
func settlementRow(s *telematics.Settlement) []any {
	var reported any
	if s.Reported != nil {
		reported = string(encodeReported(s.Reported))
	}
	return []any{
		s.Command, string(s.Unit), string(s.State), s.Reason, s.Detail, reported, written(s.At),
		written(s.SentAt), int64(s.Attempts), written(s.ReceivedAt),
		!s.State.IsOpen(),
		string(s.State.Outcome()), string(s.Code()),
	}
}

// allowed lists what the lifecycle allows, as an array of Postgres: a state, a space, and one that may follow [LAW-3].
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

// settleEach applies settlements of different commands and returns the commands that
// changed. Those of several are locked by id, so that no two batches can wait for each other.
func settleEach(ctx context.Context, db querier, kind settleKind, rows [][]any) (map[telematics.CommandID]telematics.Command, error) {
	changed, err := selectCommands(ctx, db, settleStatements[kind], parameters(rows)...)
	if err != nil {
		return nil, err
	}
	byID := make(map[telematics.CommandID]telematics.Command, len(changed))
	for _, c := range changed {
		byID[c.ID] = c
	}
	return byID, nil
}

// complete returns a known command with what its settlement has changed.
func complete(s telematics.Settlement, changed telematics.Command) telematics.Command {
	c := *s.Known
	c.Key, c.Protocol, c.Version = nil, "", 0 // as it is read
	c.State, c.Reason, c.Detail = s.State, s.Reason, s.Detail
	if c.Reported = changed.Reported; s.Reported != nil {
		c.Reported = s.Reported
	}
	c.Late, c.Attempts = changed.Late, changed.Attempts
	c.SentAt, c.ReceivedAt, c.Completed = changed.SentAt, changed.ReceivedAt, changed.Completed
	return c
}

// settleKind says what a statement that settles has to do. What it need not do would cost it all the same: Postgres sets each part of a
// plan up anew.
type settleKind struct {
	one   bool // command
	known bool // only what may have changed, and is not in the settlements, is returned: most of the rest takes longer to read than to write
	frees bool // there may be keys that are free now
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
	source, from, state := settleMany, `settlement as s join locked using (id)`, `locked.state`
	if k.one { // the update waits for whoever changes it, and looks at it anew; for whom it need not wait, nothing it wants is possible later, either
		source, from, state = settlementColumns.one(), `settlement as s`, `c.state`
	}
	text := `with ` + source + `, settled as (
		update commands as c
		set state = s.state, reason = s.reason, detail = s.detail,
			reported = coalesce(s.reported, c.reported),
			late = c.state in ('unknown', 'expired'),
			sent_at = coalesce(c.sent_at, s.sent_at),
			attempts = greatest(c.attempts, s.attempts),
			received_at = coalesce(c.received_at, case when s.state = 'received' then s.at else s.received_at end),
			completed_at = case when s.final then s.at else c.completed_at end
		from ` + from + `
		where c.id = s.id
			and s.unit in ('', c.unit)
			and ` + state + ` || ' ' || s.state = any ('` + allowed + `')
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

var settleMany = settlementColumns.many() + `, locked as (
		select id, state from commands where id = any ($1) order by id for update
	)`

const (
	writeLines = `, lines as (
		insert into activity (at, actor_subject, actor_role, actor_agency_id, agency_id, vehicle_id, booking_id, action,
			parameters, outcome, code, command_id, request_id, latency_us, late)
		select completed_at, actor_subject, actor_role, actor_agency_id, nullif(agency_id, 0), vehicle_id, booking_id,
			'command.' || action, parameters, outcome, code, id, request_id,
			extract(epoch from completed_at - requested_at) * 1000000, late
		from settled
		where final
		order by completed_at, id
	)`

	freeKeys = `, freed as (
		delete from idempotency_keys as k using settled
		where k.command_id = settled.id and settled.outcome = '` + string(telematics.NotExecuted) + `'
	)`

	returnAll     = ` select ` + commandColumns + ` from settled`
	returnChanged = ` select id, late, attempts, sent_at, received_at, completed_at, case when not reports then reported end as reported from settled`
)
