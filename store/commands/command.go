package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/lib/pq"

	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	v1 "motorpool/telematics/v1"
)

// commandRow is a row of commands, with the columns that are decoded.
type commandRow struct {
	telematics.Command
	parameters, reported *string
	assurance            *int16
	retransmitted        pq.Int64Array
}

// commandColumns are the columns of a commandRow, by name: a newer version of the program may have
// added others.
const commandColumns = `id, vehicle_id, agency_id, unit, action, parameters, lane, seq, instance,
	actor_subject, actor_role, actor_agency_id, request_id, state, reason, detail, reported, late, overruled, attempts,
	requested_at, sent_at, received_at, completed_at, deadline, bulk_id, booking_id, assurance, answer_by, retransmitted_ms`

// fields are where commandColumns go.
func (r *commandRow) fields() []any {
	c := &r.Command
	return []any{
		&c.ID, &c.Vehicle, &c.Agency, &c.Unit, &c.Action, &r.parameters, &c.Lane, &c.Seq, &c.Instance,
		&c.Actor.Subject, &c.Actor.Role, pg.OrZero(&c.Actor.Agency), pg.OrZero(&c.RequestID), &c.State, &c.Reason, &c.Detail, &r.reported,
		&c.Late, &c.Overruled, &c.Attempts, pg.UTC(&c.Requested), pg.UTC(&c.SentAt), pg.UTC(&c.ReceivedAt), pg.UTC(&c.Completed),
		pg.UTC(&c.Deadline), pg.OrZero(&c.Bulk), pg.OrZero(&c.Booking), &r.assurance, pg.UTC(&c.BestEffort.AnswerBy), &r.retransmitted,
	}
}

func (r *commandRow) command() (c telematics.Command, err error) {
	c = r.Command
	if c.Attention, err = activity.DecodeAttention(r.parameters); err == nil {
		c.Reported, err = decodeReported(r.reported)
	}
	if err != nil {
		return telematics.Command{}, fmt.Errorf("command %s: %w", c.ID, err)
	}
	c.Assurance, c.BestEffort = telematics.PromisesOf(r.assurance), decodeBestEffort(r.assurance, c.BestEffort.AnswerBy)
	c.Retransmitted = decodeRetransmitted(r.retransmitted, c.SentAt)
	return c, nil
}

// encodeRetransmitted returns times of retransmissions as an array of Postgres, in milliseconds
// after the first publication; null where there are none: most commands have none.
func encodeRetransmitted(p delivery.Progress) any {
	if len(p.Retransmitted) == 0 {
		return nil
	}
	offsets := make([]string, len(p.Retransmitted))
	for i, at := range p.Retransmitted {
		offsets[i] = strconv.FormatInt(at.Sub(p.SentAt).Milliseconds(), 10)
	}
	return "{" + strings.Join(offsets, ",") + "}"
}

func decodeRetransmitted(offsets []int64, sentAt time.Time) []time.Time {
	var times []time.Time
	for _, offset := range offsets {
		times = append(times, sentAt.Add(time.Duration(offset)*time.Millisecond))
	}
	return times
}

// encodeReported encodes the change that a command caused as a report of protocol v1.
func encodeReported(r *telematics.Report) json.RawMessage {
	if r == nil {
		return nil
	}
	return v1.EncodeReport(*r)
}

func decodeReported(message *string) (*telematics.Report, error) {
	if message == nil {
		return nil, nil
	}
	report, _, err := v1.RereadReport([]byte(*message), time.Now())
	if err != nil {
		return nil, err
	}
	return &report, nil
}

// recorded returns a query of commands in both tables: commands has the open ones and those settled
// within a day, settled_commands the others.
func recorded(where string) string {
	return `(select ` + commandColumns + ` from commands ` + where + `)
		union all (select ` + commandColumns + ` from settled_commands ` + where + `)`
}

// durable returns a query of commands that fails where the synchronous standby may not have the
// settlements that it has read. A settlement whose wait for the standby was cancelled is visible,
// and may be lost. Commits reach the standby in their order, so a later one that it has confirmed
// proves the earlier ones: the query commits a message, which costs no round trip.
// Without a synchronous standby, and where nothing is settled, it commits nothing.
func durable(query string) string {
	return `with found as materialized (` + query + `), durable as (
			select pg_logical_emit_message(true, 'motorpool', '') from found
			where state not in ('accepted', 'sent', 'received') and current_setting('synchronous_standby_names') <> ''
			limit 1
		)
		select found.* from found left join durable on true`
}

// selectCommands returns the commands of a query.
func selectCommands(ctx context.Context, db pg.Querier, query string, args ...any) ([]telematics.Command, error) {
	return pg.Read(ctx, db, (*commandRow).fields, (*commandRow).command, query, args...)
}

// Command returns a command, or a *telematics.Error with CommandNotFound.
func (s *Store) Command(ctx context.Context, id telematics.CommandID) (telematics.Command, error) {
	return s.command(ctx, recorded(`where id = $1`), id)
}

func (s *Store) command(ctx context.Context, query string, id telematics.CommandID) (telematics.Command, error) {
	found, err := selectCommands(ctx, s.db.Pool, query, id)
	if err != nil {
		return telematics.Command{}, unavailable.Wrap("read command", err)
	}
	if len(found) == 0 {
		return telematics.Command{}, telematics.NoSuchCommand(id)
	}
	return found[0], nil
}

// VehicleCommands implements httpapi.Fleet.
func (s *Store) VehicleCommands(
	ctx context.Context, vehicle telematics.VehicleID, agency telematics.AgencyID, page telematics.Page,
) ([]telematics.Command, error) {
	const latest = `
		order by seq desc
		limit nullif($4::bigint, 0)`
	commands, err := selectCommands(ctx, s.db.Lists, recorded(`
		where vehicle_id = $1 and ($2::bigint = 0 or agency_id = $2) and ($3::bigint = 0 or seq < $3)`+latest)+latest,
		vehicle, agency, page.Before, page.Limit)
	return commands, unavailable.Wrap("read the vehicle's commands", err)
}

// Updates implements broker.Commands. All of them are durable.
func (s *Store) Updates(ctx context.Context, unanswered, received []telematics.CommandID) ([]telematics.Command, error) {
	if len(unanswered)+len(received) == 0 {
		return nil, nil
	}
	commands, err := selectCommands(ctx, s.db.Prepared, durable(`
		select `+commandColumns+` from commands
		where id = any ($1::uuid[]) and state not in ('accepted', 'sent')
			or id = any ($2::uuid[]) and state not in ('accepted', 'sent', 'received')`),
		pq.Array(unanswered), pq.Array(received))
	return commands, unavailable.Wrap("read updates of commands", err)
}

// Overdue implements broker.Commands: a process whose clock is ahead must not settle commands that
// others still wait for. The longest overdue are first, deadlines farther ahead than there can be
// last.
func (s *Store) Overdue(ctx context.Context, before time.Time, limit int) ([]telematics.Command, error) {
	commands, err := selectCommands(ctx, s.db.Pool, `
		(select `+commandColumns+` from commands
		where state in ('accepted', 'sent', 'received') and deadline < $1 -- which ends the look at the index; a clock, by itself, does not
			and deadline < clock_timestamp()
		order by deadline
		limit $2)
		union all
		(select `+commandColumns+` from commands
		where state in ('accepted', 'sent', 'received')
			and deadline > greatest(now(), $1) + `+pg.Interval(telematics.MaxBudget+telematics.DeadlineTolerance)+`
		limit $2)
		limit $2`,
		pg.Timestamp(before), limit)
	return commands, unavailable.Wrap("read overdue commands", err)
}
