package commands

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// madeAt returns a command that was requested at a time, with an ID of that time.
func madeAt(vehicle telematics.VehicleID, at time.Time) telematics.Command {
	c := brokertest.NewCommand(vehicle, telematics.Lock)
	c.ID = uuid.Must(uuid.NewV7())
	var milliseconds [8]byte
	binary.BigEndian.PutUint64(milliseconds[:], uint64(at.UnixMilli()))
	copy(c.ID[:6], milliseconds[2:])
	c.Requested = at.UTC().Truncate(time.Millisecond)
	c.Deadline = c.Requested.Add(10 * time.Second)
	return c
}

// settleAs claims a command and settles it.
func settleAs(t *testing.T, p *instance, c telematics.Command, state telematics.State) telematics.Command {
	t.Helper()
	p.mustClaim(t, c)
	settled, ok, err := p.Settle(
		t.Context(),
		delivery.Settlement{Command: c.ID, State: state, Reason: "as the test says", At: c.Requested.Add(time.Second)},
	)
	if err != nil || !ok {
		t.Fatalf("Settle = %v, %v", ok, err)
	}
	return *settled
}

func moveSettled(t *testing.T, p *instance) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = p.MoveSettled(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// whereIs returns the table or partition that has a command.
func whereIs(t *testing.T, p *instance, id telematics.CommandID) string {
	t.Helper()
	var places []string
	require.NoError(t, p.Pool.Select(&places, `
		select tableoid::regclass::text from commands where id = $1
		union all select tableoid::regclass::text from settled_commands where id = $1`, id))
	return strings.Join(places, ", ")
}

func wantAt(t *testing.T, p *instance, id telematics.CommandID, place string) {
	t.Helper()
	assert.Equal(t, whereIs(t, p, id), place, "command %s is in", id)
}

func partitionOf(c telematics.Command) string {
	return "settled_commands_" + c.Requested.UTC().Format("2006_01")
}

func TestMoveSettled_MovesOldSettledCommands(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	vehicle, _ := storetest.AddVehicle(t, p.DB, 1)
	now := time.Now()
	old := settleAs(t, p, madeAt(vehicle, now.Add(-movedAfter-time.Minute)), telematics.Succeeded)
	lastYear := settleAs(t, p, madeAt(vehicle, now.AddDate(-1, 0, 0)), telematics.Unknown)
	firstOfMonth := settleAs(t, p, madeAt(vehicle, time.Date(2026, 2, 1, 0, 0, 0, 0, time.UTC)), telematics.Failed)
	lastOfMonth := settleAs(t, p, madeAt(vehicle, time.Date(2026, 1, 31, 23, 59, 59, 999e6, time.UTC)), telematics.Expired)
	young := settleAs(t, p, madeAt(vehicle, now.Add(-movedAfter+time.Minute)), telematics.Succeeded)
	keyed := madeAt(vehicle, now.AddDate(0, 0, -3))
	key := brokertest.NewKey()
	keyed.Key = key
	keyed = settleAs(t, p, keyed, telematics.Succeeded)
	opened := madeAt(vehicle, now.AddDate(0, -2, 0))
	p.mustClaim(t, opened)
	b := newBulk(vehicle, vehicle+1)
	_, err := p.OpenBulk(t.Context(), b)
	require.NoError(t, err)
	storetest.Exec(t, p.Pool, `update commands set bulk_id = $1 where id = $2`, b.ID, old.ID)
	stays, _ := storetest.AddVehicle(t, p.DB, vehicle+1)
	ofBulk := madeAt(stays, now)
	ofBulk.Bulk = b.ID
	ofBulk = settleAs(t, p, ofBulk, telematics.Failed)
	before, err := p.VehicleCommands(t.Context(), vehicle, 0, telematics.Page{})
	if err != nil || len(before) != 7 {
		t.Fatalf("%d commands, %v; want 7", len(before), err)
	}
	moveSettled(t, p)
	for _, c := range []telematics.Command{old, lastYear, firstOfMonth, lastOfMonth} {
		wantAt(t, p, c.ID, partitionOf(c))
	}
	for _, c := range []telematics.Command{young, keyed, opened} {
		wantAt(t, p, c.ID, "commands")
	}
	// Reads return the same as before.
	after, err := p.VehicleCommands(t.Context(), vehicle, 0, telematics.Page{})
	if err != nil || fmt.Sprintf("%+v", after) != fmt.Sprintf("%+v", before) {
		t.Errorf("after: %+v, %v\nbefore: %+v", after, err, before)
	}
	for _, want := range before {
		if c, err := p.Command(t.Context(), want.ID); err != nil || fmt.Sprintf("%+v", c) != fmt.Sprintf("%+v", want) {
			t.Errorf("Command = %+v, %v\nwant %+v", c, err, want)
		}
	}
	for first := range len(before) - 1 {
		page, err := p.VehicleCommands(t.Context(), vehicle, 1, telematics.Page{Before: before[first].Seq, Limit: 2})
		want := before[first+1 : min(first+3, len(before))]
		if err != nil || fmt.Sprintf("%+v", page) != fmt.Sprintf("%+v", want) {
			t.Errorf("page %d: %+v, %v\nwant %+v", first, page, err, want)
		}
	}
	if made, found, err := p.FindByKey(t.Context(), *key); err != nil || !found || made.Command.ID != keyed.ID {
		t.Errorf("FindByKey = %+v, %v, %v; want the moved command", made, found, err)
	}
	got, err := p.Bulk(t.Context(), b.ID)
	if err != nil || len(got.Items) != 2 || got.Items[0].Command == nil || got.Items[0].Command.ID != old.ID ||
		got.Items[1].Command == nil || got.Items[1].Command.ID != ofBulk.ID {
		t.Errorf("Bulk = %+v, %v; want both commands", got, err)
	}
}

// Two instances move concurrently: each command is moved once.
func TestMoveSettled_ConcurrentInstances(t *testing.T) {
	address := storetest.NewDatabase(t)
	p := open(t, address)
	units := storetest.AddFleet(t, p.DB, 20)
	var ids []telematics.CommandID
	for i := range units {
		for day := range 10 {
			ids = append(ids, settleAs(t, p, madeAt(telematics.VehicleID(i+1), time.Now().AddDate(0, -day, -2)), telematics.Succeeded).ID)
		}
	}
	var moving sync.WaitGroup
	begin := make(chan struct{})
	for range 4 {
		other := open(t, address)
		require.NoError(t, other.Ping(t.Context()))
		moving.Go(func() {
			<-begin // all need the new partitions at the same time
			for range 5 {
				if _, err := other.MoveSettled(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	close(begin)
	moving.Wait()
	var left, moved int
	if err := p.Pool.QueryRow(`select (select count(*) from commands), (select count(*) from settled_commands)`).Scan(&left,
		&moved); err != nil || left != 0 || moved != len(ids) {
		t.Errorf("%d commands left and %d moved of %d, %v", left, moved, len(ids), err)
	}
}

// A unit may repeat a result at any time later. A moved command is settled where the lifecycle
// allows it, as if it had not been moved.
func TestSettle_LateAnswerToAMovedCommand(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	next := storetest.Vehicles(t, p.DB)
	for _, from := range telematics.States {
		if from.IsOpen() {
			continue
		}
		for _, to := range []telematics.State{telematics.Received, telematics.Succeeded, telematics.Rejected, telematics.Failed} {
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				vehicle, unit := next()
				c := settleAs(t, p, madeAt(vehicle, time.Now().AddDate(0, -1, 0)), from)
				moveSettled(t, p)
				wantAt(t, p, c.ID, partitionOf(c))
				answer := delivery.Settlement{Command: c.ID, Unit: "another", State: to, At: time.Now()}
				if _, ok, err := p.Settle(t.Context(), answer); ok || err != nil {
					t.Errorf("an answer of another unit: %v, %v; want it ignored", ok, err)
				}
				wantAt(t, p, c.ID, partitionOf(c))
				answer.Unit = unit
				settled, ok, err := p.Settle(t.Context(), answer)
				if err != nil || ok != from.MayBecome(to) {
					t.Fatalf("Settle = %+v, %v, %v", settled, ok, err)
				}
				if result := noteUnrecorded(t, p, unrecorded(unit, c.ID)); result.Unknown || result.Noted {
					t.Errorf("a moved command is stored as lost: %+v", result)
				}
				if !ok {
					wantAt(t, p, c.ID, partitionOf(c))
					return
				}
				if settled.State != to || !settled.Late || settled.Overruled != (from == telematics.Rejected) {
					t.Errorf("settled %+v, want %s, late", settled, to)
				}
				entries, err := p.Activities(t.Context(), telematics.ActivityQuery{Agency: 1, Vehicle: vehicle})
				if err != nil || len(entries) != 2 || entries[0].Command != c.ID || !entries[0].Late || entries[0].Outcome != to.Outcome() {
					t.Errorf("audit log %+v, %v; want a late entry", entries, err)
				}
				moveSettled(t, p)
				wantAt(t, p, c.ID, partitionOf(c))
				if again, ok, err := p.Settle(t.Context(), answer); ok || err != nil {
					t.Errorf("the repeated answer: %+v, %v; want it ignored", again, err)
				}
			})
		}
	}
}

// A clock that is set far ahead, as Postgres's is, makes a command old whose id is not.
func TestMayHaveMoved_GoesByTheTimeOfTheAnswer(t *testing.T) {
	now := time.Now()
	id := madeAt(1, now).ID
	for ahead, want := range map[time.Duration]bool{time.Second: false, movedAfter: true} {
		answer := &delivery.Settlement{Command: id, Unit: "unit", State: telematics.Succeeded, At: now.Add(ahead)}
		assert.Equal(t, mayHaveMoved(answer), want, "an answer after %v", ahead)
	}
}

// A column that a migration adds to commands must be added to settled_commands, too.
func TestSettledCommands_HaveTheColumnsOfCommands(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	columns := func(table string) (names []string) {
		t.Helper()
		require.NoError(t, p.Pool.Select(&names, `
			select attname || ' ' || format_type(atttypid, atttypmod) from pg_attribute
			where attrelid = $1::text::regclass and attnum > 0 and not attisdropped order by attname`, table))
		return names
	}
	hot, settled := columns("commands"), columns("settled_commands")
	if !slices.Equal(hot, settled) {
		t.Errorf("columns of commands: %v\nof settled_commands: %v", hot, settled)
	}
	var moves []string
	if err := p.Pool.Select(&moves, `select prosrc from pg_proc
		where proname in ('move_settled_commands', 'return_settled_commands')`); err != nil || len(moves) != 2 {
		t.Fatalf("functions %v, %v; want 2", moves, err)
	}
	for _, column := range hot {
		name, _, _ := strings.Cut(column, " ")
		for _, body := range moves {
			if into := body[strings.Index(body, "insert into"):]; strings.Count(
				strings.NewReplacer("\n", " ", ",", " ", "(", " ", ")", " ").Replace(into), " "+name+" ",
			) < 2 {
				t.Errorf("a move does not copy the column %s", name)
			}
		}
	}
}
