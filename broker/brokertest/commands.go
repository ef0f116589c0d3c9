package brokertest

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// CommandRecord is one store of commands, as two instances of Motorpool use it.
type CommandRecord struct {
	Here, There broker.Commands
	Vehicle     func() telematics.VehicleID // adds a vehicle
	Fleet       Fleet                       // the vehicles of the store
	// A command's audit log entries, oldest first.
	Entries func(telematics.CommandID) []telematics.Activity
}

// CommandsContract runs the contract of stores of commands. The store may have other users, too.
func CommandsContract(t *testing.T, open func(*testing.T) CommandRecord) {
	for name, run := range map[string]func(*testing.T, CommandRecord){
		"ClaimedCommandIsStored":                       claimedIsStored,
		"ClaimOfOccupiedLaneReturnsTheOccupant":        laneHasOneCommand,
		"ClaimOccupiesNoOtherLaneOrVehicle":            lanesAreIndependent,
		"SettledCommandFreesItsLane":                   settledFreesLane,
		"ClaimWithUsedIDFails":                         claimedOnce,
		"ClaimForMissingVehicleReturnsNotFound":        claimForMissingVehicle,
		"OneOfConcurrentClaimsWins":                    oneOfManyClaimsWins,
		"ProgressIsStored":                             progressIsStored,
		"ProgressMovesNoCommandBack":                   progressMovesNothingBack,
		"SettlementStoresProgress":                     settlementStoresProgress,
		"SettlementAgainstTheLifecycleIsNotApplied":    lifecycleIsKept,
		"SettlementWithKnownCommandReturnsItAsStored":  knownCommandIsReturnedAsItIsRead,
		"SettlementAddsOneAuditLogEntry":               settlementAddsOneEntry,
		"ReceivedAddsNoAuditLogEntry":                  receivedAddsNoEntry,
		"LateSuccessReplacesUnknownExpiredAndRejected": lateAnswerSettles,
		"AnswerOfAnotherUnitIsNotApplied":              answerOfAnotherUnit,
		"SettlementOfMissingCommandIsNotApplied":       settleMissingCommand,
		"OneOfConcurrentAnswersSettles":                oneOfManyAnswersSettles,
		"UpdatesAreReceivedAndSettledCommands":         updatesOfCommands,
		"OverdueCommandsAreOrderedByDeadline":          overdueCommands,
		"FastClockOfAnInstanceMakesNothingOverdue":     fastClock,
		"DeadlineThatCannotBeIsOverdue":                leaptClock,
		"KeyReturnsItsCommandInPresentState":           keyNamesItsCommand,
		"SecondClaimWithAKeyIsRefused":                 keyMakesOneCommand,
		"SameKeyOfAnotherCallerIsFree":                 keyOfAnotherCallerIsAnotherKey,
		"OnlyNotExecutedCommandsFreeTheirKey":          refusalFreesItsKey,
		"OccupiedLaneLeavesTheKeyFree":                 takenLaneLeavesTheKeyFree,
		"OneOfConcurrentClaimsWithAKeyWins":            oneOfManyRepetitionsWins,
		"ClaimWithCurrentVersionSucceeds":              currentClaimSucceeds,
		"ClaimWithOutdatedVersionWritesNothing":        staleClaimWritesNothing,
		"StaleClaimOfOccupiedLaneIsAcceptedAgain":      staleClaimOfOccupiedLane,
		"StaleClaimFailsNoConcurrentClaim":             staleClaimFailsNoOther,
		"AssuranceIsStored":                            assuranceIsStored,
		"ClaimOfOccupiedUnitLaneReturnsTheOccupant":    unitLaneHasOneCommand,
		"UnansweredCommandKeepsItsUnitLane":            unansweredKeepsUnitLane,
		"UnitLaneIsFreeAfterAnswerBy":                  unitLaneIsFreeAfterAnswerBy,
		"AnsweredBeforeReturnsTheLatestCommandFirst":   answeredBefore,
		"UnitLaneStaysOccupiedWhenTheUnitMoves":        unitLaneOfMovedUnit,
		"OneOfConcurrentClaimsOfAUnitLaneWins":         oneOfManyUnitClaimsWins,
		"UnconfirmedCommandIsConcludedOnce":            unconfirmedIsConcludedOnce,
		"CommandThatNoReportCanSettleIsNotUnconfirmed": notUnconfirmed,
		"UnconfirmedCommandsAreOrderedByDeadline":      unconfirmedAreOrdered,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

// instant is when the contract's commands were requested.
var instant = time.Date(2026, 1, 2, 10, 0, 0, 123456000, time.UTC)

// NewCommand returns an accepted command that can be claimed.
func NewCommand(vehicle telematics.VehicleID, action telematics.Action) telematics.Command {
	c := telematics.Command{
		ID: uuid.New(), Vehicle: vehicle, Agency: 1, Unit: telematics.Unit(fmt.Sprintf("unit-%d", vehicle)),
		Action: action, Lane: action.Lane(), Instance: "a",
		Actor:     telematics.Actor{Subject: "admin-7", Role: telematics.Admin, Agency: 1},
		RequestID: uuid.New(), State: telematics.Accepted, Requested: instant, Deadline: instant.Add(10 * time.Second),
		Assurance: telematics.Promises{Signed: true, Expiring: true, Deduplicated: true, Correlated: true, Confirmed: true},
	}
	if action == telematics.AttentionSignal {
		c.Attention = &telematics.Attention{Signal: telematics.Horn, Duration: 1500 * time.Millisecond}
	}
	return c
}

func ref(c telematics.Command) *telematics.Command { return &c }

// claim claims a command and returns it as it must be stored.
func (r CommandRecord) claim(t *testing.T, c telematics.Command) telematics.Command {
	t.Helper()
	claim, err := r.Here.Claim(t.Context(), &c)
	if err != nil || claim.Occupant != nil || claim.Seq == 0 || claim.At.IsZero() {
		t.Fatalf("Claim = %+v, %v; want the lane, and the time", claim, err)
	}
	c.Seq = claim.Seq
	return c
}

func (r CommandRecord) claimLock(t *testing.T) telematics.Command {
	t.Helper()
	return r.claim(t, NewCommand(r.Vehicle(), telematics.Lock))
}

// settlement returns a settlement of a command, a second after its request.
func settlement(c telematics.Command, state telematics.State) delivery.Settlement {
	return delivery.Settlement{Command: c.ID, State: state, At: c.Requested.Add(time.Second)}
}

func (r CommandRecord) settle(t *testing.T, s delivery.Settlement) telematics.Command {
	t.Helper()
	c, ok, err := r.Here.Settle(t.Context(), s)
	if err != nil || !ok {
		t.Fatalf("Settle(%+v) = %v, %v", s, ok, err)
	}
	return *c
}

// open returns an open command as it is stored. Its deadline must be in the past.
func (r CommandRecord) open(t *testing.T, id telematics.CommandID) telematics.Command {
	t.Helper()
	overdue, err := r.There.Overdue(t.Context(), instant.AddDate(50, 0, 0), 1_000_000)
	require.NoError(t, err, "Overdue")
	i := slices.IndexFunc(overdue, func(c telematics.Command) bool { return c.ID == id })
	if i < 0 {
		t.Fatalf("command %s is not open", id)
	}
	return overdue[i]
}

func wantCommand(t *testing.T, got, want telematics.Command) {
	t.Helper()
	assert.DeepEqual(t, got, want, "command")
}

func claimedIsStored(t *testing.T, r CommandRecord) {
	for _, action := range append(slices.Clone(telematics.ControlActions), telematics.ReportState) {
		c := r.claim(t, NewCommand(r.Vehicle(), action))
		wantCommand(t, r.open(t, c.ID), c)
	}
	anonymous := NewCommand(r.Vehicle(), telematics.Lock)
	anonymous.Actor = telematics.Actor{Subject: "motorpool", Role: telematics.System}
	anonymous.RequestID = uuid.Nil
	anonymous = r.claim(t, anonymous)
	wantCommand(t, r.open(t, anonymous.ID), anonymous)
	rented := NewCommand(r.Vehicle(), telematics.Unlock)
	rented.Actor, rented.Booking = telematics.Actor{Subject: "client-1", Role: telematics.Client, Agency: 1}, 17
	rented = r.claim(t, rented)
	wantCommand(t, r.open(t, rented.ID), rented)
}

func laneHasOneCommand(t *testing.T, r CommandRecord) {
	first := r.claimLock(t)
	for _, action := range []telematics.Action{telematics.Lock, telematics.Unlock, telematics.EnableDriving} {
		claim, err := r.There.Claim(t.Context(), ref(NewCommand(first.Vehicle, action)))
		if err != nil || claim.Occupant == nil || claim.Seq != 0 {
			t.Fatalf("Claim(%s) = %+v, %v; want an occupant", action, claim, err)
		}
		wantCommand(t, *claim.Occupant, first)
	}
}

func lanesAreIndependent(t *testing.T, r CommandRecord) {
	for range 2 {
		vehicle := r.Vehicle()
		for _, action := range []telematics.Action{
			telematics.Lock, telematics.AttentionSignal, telematics.OpenTopCase, telematics.ReportState,
		} {
			r.claim(t, NewCommand(vehicle, action))
		}
	}
}

func settledFreesLane(t *testing.T, r CommandRecord) {
	vehicle := r.Vehicle()
	var last int64
	for _, state := range telematics.States {
		if state.IsOpen() {
			continue
		}
		c := r.claim(t, NewCommand(vehicle, telematics.Lock))
		if c.Seq <= last {
			t.Errorf("seq %d follows %d in one lane", c.Seq, last)
		}
		last = c.Seq
		r.settle(t, settlement(c, state))
	}
}

func claimedOnce(t *testing.T, r CommandRecord) {
	c := r.claimLock(t)
	again := NewCommand(r.Vehicle(), telematics.Lock)
	again.ID = c.ID
	if claim, err := r.Here.Claim(t.Context(), &again); err == nil {
		t.Errorf("Claim = %+v for an id that is in use", claim)
	}
}

func claimForMissingVehicle(t *testing.T, r CommandRecord) {
	const missing = 1 << 40
	_, err := r.Here.Claim(t.Context(), ref(NewCommand(missing, telematics.Lock)))
	if want := telematics.NoSuchVehicle(missing); !reflect.DeepEqual(err, error(want)) {
		t.Errorf("Claim = %v, want %v", err, want)
	}
}

func oneOfManyClaimsWins(t *testing.T, r CommandRecord) {
	vehicle := r.Vehicle()
	var mu sync.Mutex
	var won []telematics.CommandID
	var occupants []telematics.CommandID
	race(40, r.Here, r.There, func(_ int, commands broker.Commands) {
		c := NewCommand(vehicle, telematics.Unlock)
		claim, err := commands.Claim(t.Context(), &c)
		if err != nil {
			t.Errorf("Claim: %v", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if claim.Occupant == nil {
			won = append(won, c.ID)
			return
		}
		occupants = append(occupants, claim.Occupant.ID)
	})
	if len(won) != 1 {
		t.Fatalf("%d claims won one lane", len(won))
	}
	for _, id := range occupants {
		assert.Equal(t, id, won[0], "a claim returned the occupant")
	}
}

func updatesOfCommands(t *testing.T, r CommandRecord) {
	var ids []telematics.CommandID
	want := map[telematics.CommandID]telematics.State{}
	for _, state := range telematics.States {
		c := r.commandIn(t, state)
		ids = append(ids, c.ID)
		if state != telematics.Accepted && state != telematics.Sent {
			want[c.ID] = state
		}
	}
	r.commandIn(t, telematics.Succeeded) // not queried
	ids = append(ids, uuid.New())
	for _, known := range []bool{false, true} {
		unanswered, received := ids, []telematics.CommandID(nil)
		if known {
			unanswered, received = nil, ids
			maps.DeleteFunc(want, func(_ telematics.CommandID, state telematics.State) bool { return state.IsOpen() })
		}
		updates, err := r.There.Updates(t.Context(), unanswered, received)
		require.NoError(t, err, "Updates")
		got := map[telematics.CommandID]telematics.State{}
		for _, c := range updates {
			got[c.ID] = c.State
		}
		if !reflect.DeepEqual(got, want) || len(updates) != len(want) {
			t.Errorf("Updates = %v, want %v; receipt known: %t", got, want, known)
		}
	}
	if updates, err := r.Here.Updates(t.Context(), nil, nil); err != nil || len(updates) > 0 {
		t.Errorf("Updates of nothing = %v, %v", updates, err)
	}
}

func overdueCommands(t *testing.T, r CommandRecord) {
	// Before the commands of the other tests, which are not overdue then.
	age := time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC)
	var want []telematics.CommandID
	for _, seconds := range []int{3, 1, 2, 5, 4} {
		c := NewCommand(r.Vehicle(), telematics.Lock)
		c.Requested, c.Deadline = age, age.Add(time.Duration(seconds)*time.Second)
		c = r.claim(t, c)
		switch seconds {
		case 4:
			r.settle(t, settlement(c, telematics.Expired))
		case 1:
			r.settle(t, settlement(c, telematics.Received))
			fallthrough
		case 2, 3:
			want = append(want, c.ID)
		}
	}
	overdue := func(before time.Time, limit int) []telematics.CommandID {
		commands, err := r.There.Overdue(t.Context(), before, limit)
		require.NoError(t, err, "Overdue")
		if !slices.IsSortedFunc(commands, func(a, b telematics.Command) int { return a.Deadline.Compare(b.Deadline) }) {
			t.Errorf("not ordered by deadline: %+v", commands)
		}
		var ids []telematics.CommandID
		for _, c := range commands {
			ids = append(ids, c.ID)
		}
		return ids
	}
	slices.SortFunc(want, compareIDs)
	got := overdue(age.Add(5*time.Second), 100) // a deadline at that instant is not before it
	first := overdue(age.Add(5*time.Second), 1)
	if len(first) != 1 || len(got) == 0 || first[0] != got[0] {
		t.Errorf("Overdue with limit 1 = %v, want the first of %v", first, got)
	}
	slices.SortFunc(got, compareIDs)
	assert.EqualSlices(t, got, want, "Overdue")
}

// fastClock queries as an instance does whose clock is an hour ahead.
func fastClock(t *testing.T, r CommandRecord) {
	c := NewCommand(r.Vehicle(), telematics.Lock)
	c.Requested = time.Now()
	c.Deadline = c.Requested.Add(time.Minute)
	c = r.claim(t, c)
	overdue, err := r.There.Overdue(t.Context(), time.Now().Add(time.Hour), 1_000_000)
	require.NoError(t, err, "Overdue")
	if slices.ContainsFunc(overdue, func(o telematics.Command) bool { return o.ID == c.ID }) {
		t.Error("a command whose deadline is a minute away is overdue")
	}
}

// leaptClock is a command that was claimed while all clocks were 74 years ahead.
func leaptClock(t *testing.T, r CommandRecord) {
	c := NewCommand(r.Vehicle(), telematics.Lock)
	c.Requested = time.Now().AddDate(74, 0, 0)
	c.Deadline = c.Requested.Add(telematics.DefaultBudget)
	c = r.claim(t, c)
	overdue, err := r.There.Overdue(t.Context(), time.Now(), 1_000_000)
	if err != nil || !slices.ContainsFunc(overdue, func(o telematics.Command) bool { return o.ID == c.ID }) {
		t.Fatalf("Overdue = %d commands, %v; want the one with a deadline in 74 years", len(overdue), err)
	}
	s := settlement(c, telematics.Unknown)
	s.At = time.Now()
	r.settle(t, s)
	next := NewCommand(c.Vehicle, telematics.Lock)
	next.Requested = time.Now()
	next.Deadline = next.Requested.Add(telematics.DefaultBudget)
	r.claim(t, next)
}

func compareIDs(a, b telematics.CommandID) int { return cmp.Compare(a.String(), b.String()) }
