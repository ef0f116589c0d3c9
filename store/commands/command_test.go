package commands

import (
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestCommand_IsReadBackAsWritten(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	mine, _ := add()
	other, _ := add()
	var want []telematics.Command
	for range 5 {
		c := brokertest.NewCommand(mine, telematics.AttentionSignal)
		claim, err := p.Claim(t.Context(), c)
		require.NoError(t, err)
		c.Seq = claim.Seq
		settled, ok, err := p.Settle(t.Context(), delivery.Settlement{Command: c.ID, State: telematics.Succeeded, At: morning})
		if err != nil || !ok || settled.Seq != c.Seq {
			t.Fatalf("Settle = %+v, %v, %v", settled, ok, err)
		}
		want = append(want, *settled)
		_, err = p.Claim(t.Context(), brokertest.NewCommand(other, telematics.Lock))
		require.NoError(t, err)
	}
	got, err := p.Command(t.Context(), want[0].ID)
	if err != nil || !reflect.DeepEqual(got, want[0]) {
		t.Errorf("Command\n got %+v, %v\nwant %+v", got, err, want[0])
	}
	unknown := uuid.New()
	if _, err := p.Command(t.Context(), unknown); !reflect.DeepEqual(err, error(telematics.NoSuchCommand(unknown))) {
		t.Errorf("Command of an unknown ID = %v, want NoSuchCommand", err)
	}
	slices.Reverse(want)
	all, err := p.VehicleCommands(t.Context(), mine, 0, telematics.Page{})
	if err != nil || !reflect.DeepEqual(all, want) {
		t.Errorf("VehicleCommands\n got %+v, %v\nwant %+v", all, err, want)
	}
	page, err := p.VehicleCommands(t.Context(), mine, 0, telematics.Page{Limit: 2, Before: want[1].Seq})
	if err != nil || !reflect.DeepEqual(page, want[2:4]) {
		t.Errorf("VehicleCommands, one page\n got %+v, %v\nwant %+v", page, err, want[2:4])
	}
}

func TestClaim_DrawsItsNumberAfterLockingItsVehicle(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	id, _ := storetest.AddVehicle(t, p.DB, 1)
	drawn := func() (n int64) {
		require.NoError(t, p.owner().Pool.Get(&n, `select case when is_called then last_value else 0 end from commands_seq`))
		return n
	}
	other := storetest.Begin(t, p.Pool)
	storetest.Exec(t, other, `select from vehicles where id = $1 for no key update`, id)
	c := brokertest.NewCommand(id, telematics.Lock)
	if claims, err := p.claim(t.Context(), []*telematics.Command{&c}); err != nil || !claims[0].locked || claims[0].Taken() {
		t.Errorf("claim = %+v, %v; want it locked", claims, err)
	}
	if n := drawn(); n != 0 {
		t.Errorf("number %d was drawn before the vehicle was locked", n)
	}
	require.NoError(t, other.Commit())
	if claim, err := p.Claim(t.Context(), c); err != nil || !claim.Taken() {
		t.Errorf("Claim = %+v, %v; want it taken", claim, err)
	}
}

// A claim that inserted rows before it has tried to lock all vehicles would give a lane to the
// command that the query plan has first.
func TestClaim_BatchPassesOverLockedVehiclesAndTheFirstCommandGetsTheLane(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	for id := range telematics.VehicleID(3) {
		storetest.AddVehicle(t, p.DB, id+1)
	}
	var batch []telematics.Command
	for range 3 {
		for _, id := range []telematics.VehicleID{3, 1, 2} {
			batch = append(batch, brokertest.NewCommand(id, telematics.Lock))
		}
	}
	holder := storetest.Begin(t, p.Pool)
	storetest.Exec(t, holder, `select 1 from vehicles where id = 3 for no key update`)
	check := func(batch []telematics.Command, lockedVehicle telematics.VehicleID) {
		t.Helper()
		claims, err := p.claim(t.Context(), pointers(batch))
		require.NoError(t, err)
		first := map[telematics.VehicleID]telematics.CommandID{}
		for i, c := range batch {
			_, later := first[c.Vehicle]
			switch locked := c.Vehicle == lockedVehicle; {
			case locked != claims[i].locked || locked && claims[i].Occupant != nil:
				t.Errorf("claim %d: %+v, want it locked: %t", i, claims[i], locked)
			case locked:
			case claims[i].Taken() == later || later && claims[i].Occupant.ID != first[c.Vehicle]:
				t.Errorf("claim %d: %+v, want the first one of each lane taken", i, claims[i])
			case !later:
				first[c.Vehicle] = c.ID
			}
		}
	}
	check(batch, 3)
	require.NoError(t, holder.Commit())
	var left []telematics.Command
	for _, c := range batch {
		if c.Vehicle == 3 {
			left = append(left, c)
		}
	}
	check(left, 0)
}

func TestSettle_RepeatedCommandInABatchIsSettledInOrder(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	id, _ := storetest.AddVehicle(t, p.DB, 1)
	c := brokertest.NewCommand(id, telematics.Lock)
	_, err := p.Claim(t.Context(), c)
	require.NoError(t, err)
	after := func(state telematics.State, seconds int) *delivery.Settlement {
		return &delivery.Settlement{Command: c.ID, State: state, At: c.Requested.Add(time.Duration(seconds) * time.Second)}
	}
	results, err := p.settle(t.Context(), []*delivery.Settlement{
		after(telematics.Received, 1), after(telematics.Received, 2), after(telematics.Unknown, 3),
		after(telematics.Succeeded, 4), after(telematics.Failed, 5),
	})
	require.NoError(t, err)
	var applied []bool
	for _, r := range results {
		applied = append(applied, r != nil)
	}
	assert.EqualSlices(t, applied, []bool{true, false, true, true, false}, "what was applied")
	if lines := entriesOf(t, p, c.ID); len(lines) != 2 || lines[0].Outcome != telematics.MayHave || !lines[1].Late {
		t.Errorf("entries %+v, want an unknown one and a late one", lines)
	}
}

func TestSettle_FailedBatchSettlesNothing(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	id, _ := storetest.AddVehicle(t, p.DB, 1)
	c := brokertest.NewCommand(id, telematics.Lock)
	_, err := p.Claim(t.Context(), c)
	require.NoError(t, err)
	s := delivery.Settlement{Command: c.ID, State: telematics.Received, At: morning}
	bad := delivery.Settlement{Command: c.ID, State: telematics.Failed, Reason: "\x00", At: morning}
	if _, err := p.settle(t.Context(), []*delivery.Settlement{&s, &bad}); !pg.Splits(err) {
		t.Fatalf("settle = %v, want an error that splits the batch", err)
	}
	if got, err := p.Command(t.Context(), c.ID); err != nil || got.State != telematics.Accepted {
		t.Errorf("after a failed batch: %+v, %v; want still accepted", got, err)
	}
}

// Values of units are checked before they get here. If an invalid one does get here, it fails
// alone.
func TestBatches_InvalidValueFailsAlone(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	var wg sync.WaitGroup
	for i := range 20 {
		id, _ := add()
		bad := i%10 == 0
		wg.Go(func() {
			c := brokertest.NewCommand(id, telematics.Lock)
			if _, err := p.Claim(t.Context(), c); err != nil {
				t.Errorf("Claim: %v", err)
			}
			s := delivery.Settlement{Command: c.ID, State: telematics.Failed, At: morning}
			line := telematics.Activity{At: morning, Actor: c.Actor, Action: telematics.StatusRead}
			if bad {
				s.Reason, line.Action = "\x00", "\x00"
			}
			if _, ok, err := p.Settle(t.Context(), s); ok == bad || (err != nil) != bad || unavailable.Is(err) {
				t.Errorf("Settle = %v, %v; invalid value: %v", ok, err, bad)
			}
			if err := p.Add(t.Context(), line); (err != nil) != bad {
				t.Errorf("Add = %v; invalid value: %v", err, bad)
			}
			twin := brokertest.NewCommand(id, telematics.AttentionSignal)
			if bad {
				twin.Vehicle = 4711 // does not exist
			}
			if _, err := p.Claim(t.Context(), twin); (err != nil) != bad {
				t.Errorf("Claim = %v; unknown vehicle: %v", err, bad)
			}
		})
	}
	wg.Wait()
}

func TestInvalidRows_AreRefusedByNamedConstraints(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	id, _ := storetest.AddVehicle(t, p.DB, 1)
	wantViolation := func(constraint string, err error) {
		t.Helper()
		if refusal := pq.As(err); refusal == nil || refusal.Constraint != constraint || unavailable.Is(err) {
			t.Errorf("%v, want a violation of %s", err, constraint)
		}
	}
	for _, invalid := range []struct {
		constraint string
		spoil      func(*telematics.Command)
	}{
		{"commands_lane_known", func(c *telematics.Command) { c.Lane = "fast" }},
		{"commands_actor_role_known", func(c *telematics.Command) { c.Actor.Role = "king" }},
		{"commands_parameters_fit", func(c *telematics.Command) { c.Attention = &telematics.Attention{} }},
		{"commands_parameters_fit", func(c *telematics.Command) {
			c.Action, c.Lane = telematics.AttentionSignal, telematics.AttentionLane
		}},
		{"commands_deadline_follows", func(c *telematics.Command) { c.Deadline = c.Requested.Add(-time.Second) }},
	} {
		c := brokertest.NewCommand(id, telematics.Lock)
		invalid.spoil(&c)
		_, err := p.Claim(t.Context(), c)
		wantViolation(invalid.constraint, err)
	}
	actor := brokertest.NewCommand(id, telematics.Lock).Actor
	for name, line := range map[string]telematics.Activity{
		"activity_actor_role_known": {At: morning, Actor: telematics.Actor{Subject: "anna", Role: "king"}, Action: telematics.StatusRead},
		"activity_outcome_known":    {At: morning, Actor: actor, Action: telematics.StatusRead, Outcome: "maybe"},
	} {
		wantViolation(name, p.Add(t.Context(), line))
	}
	var written int
	if err := p.Pool.GetContext(t.Context(), &written,
		`select (select count(*) from commands) + (select count(*) from activity)`); err != nil || written > 0 {
		t.Errorf("%d rows written, error %v; want none", written, err)
	}
}

func TestInvalidChanges_AreRefusedByNamedConstraints(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	id, _ := storetest.AddVehicle(t, p.DB, 1)
	_, err := p.Claim(t.Context(), brokertest.NewCommand(id, telematics.Lock))
	require.NoError(t, err)
	for change, constraint := range map[string]string{
		`state = 'done', completed_at = now()`: "commands_state_known",
		`state = 'succeeded'`:                  "commands_completed_when_settled",
		`completed_at = now()`:                 "commands_completed_when_settled",
		`attempts = -1`:                        "commands_attempts_positive",
		`vehicle_id = 4711`:                    "commands_vehicle_exists",
	} {
		_, err := p.Pool.Exec(`update commands set ` + change)
		if refusal := pq.As(err); refusal == nil || refusal.Constraint != constraint {
			t.Errorf("%s: %v, want a violation of %s", change, err, constraint)
		}
	}
}

// A unit repeats its answers for as long as it remembers them, also from another vehicle.
func TestSettle_ReportFromAfterAMoveIsNotOfTheCommand(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.Exec(t, p.Pool, `insert into agencies (id, code, name) values (2, 'TWO', 'Two')`)
	add := storetest.Vehicles(t, p.DB)
	for name, move := range map[string]string{
		"not moved":              `select $1::bigint`,
		"the unit":               `update units set vehicle_id = null where vehicle_id = $1`,
		"the vehicle's agency":   `update vehicles set agency_id = 2 where id = $1`,
		"another unit is in use": `update units set serial = 'other' where vehicle_id = $1`,
	} {
		vehicle, unit := add()
		c := brokertest.NewCommand(vehicle, telematics.Lock)
		c.Unit = unit
		_, err := p.Claim(t.Context(), c)
		require.NoError(t, err)
		storetest.Exec(t, p.Pool, move, vehicle)
		report := telematics.Report{At: time.Now(), Values: map[telematics.Field]any{telematics.Latitude: 48.1, telematics.Longitude: 11.5}}
		late := delivery.Settlement{Command: c.ID, Unit: unit, State: telematics.Succeeded, At: time.Now(), Reported: &report}
		got, ok, err := p.Settle(t.Context(), late)
		if err != nil || !ok || got.State != telematics.Succeeded || (got.Reported != nil) != (name == "not moved") {
			t.Errorf("%s: settled as %+v, %t, %v", name, got, ok, err)
		}
	}
}
