package store

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Claims that share a statement are each decided for themselves.
func TestAStaleClaimSharesItsStatement(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	fleet, add := fleetIn(t, p), storetest.Vehicles(t, p.DB)
	by := func(twin telematics.Twin, action telematics.Action) telematics.Command {
		c := brokertest.NewCommand(twin.ID, action)
		c.Version = twin.Version
		return c
	}
	record := func() telematics.Twin {
		id, _ := add()
		twin, err := p.Record(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return *twin
	}
	same, moved, taken, gone := record(), record(), record(), record()
	fleet.Change(moved.ID, func(twin *telematics.Twin) { twin.AgencyID = 2 })
	fleet.Remove(gone.ID)
	occupant := by(taken, telematics.Lock)
	if claim, err := p.Claim(t.Context(), occupant); err != nil || !claim.Taken() {
		t.Fatalf("Claim = %+v, %v", claim, err)
	}
	unchecked := by(moved, telematics.OpenTopCase)
	unchecked.Version = 0
	keyed := by(moved, telematics.AttentionSignal)
	keyed.Key = brokertest.NewKey()
	batch := []telematics.Command{
		by(same, telematics.Lock), by(moved, telematics.Lock), by(taken, telematics.Unlock), unchecked, by(gone, telematics.Lock),
		by(same, telematics.OpenTopCase), keyed,
	}
	claims, err := p.claim(t.Context(), pointers(batch))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"taken", "stale", "occupied", "taken", "stale", "taken", "stale"} {
		claim := claims[i]
		occupied := claim.Occupant != nil && claim.Occupant.ID == occupant.ID
		if claim.Taken() != (want == "taken") || claim.stale != (want == "stale") || occupied != (want == "occupied") {
			t.Errorf("claim %d: %+v, want it %s", i, claim, want)
		}
	}
	var written []telematics.CommandID
	if err := p.Pool.Select(&written, `select id from commands order by seq`); err != nil || len(written) != 4 {
		t.Errorf("written %v, %v; want those that were taken", written, err)
	}
	if made, found, err := p.Made(t.Context(), *keyed.Key); err != nil || found {
		t.Errorf("the key of a stale claim holds %+v, %v", made, err)
	}
}

// Who waits for a vehicle that somebody changes finds it as it is afterwards.
func TestAClaimIsCheckedWhenItHoldsItsVehicle(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	fleetIn(t, p)
	id, _ := storetest.AddVehicle(t, p.DB, 1)
	twin, err := p.Record(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	other, err := p.Pool.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Rollback() //nolint:errcheck // after a commit it has nothing to do
	if _, err := other.Exec(`update vehicles set agency_id = 2 where id = $1`, id); err != nil {
		t.Fatal(err)
	}
	claimed := make(chan error, 1)
	go func() {
		c := brokertest.NewCommand(id, telematics.Lock)
		c.Version = twin.Version
		_, err := p.Claim(context.Background(), c)
		claimed <- err
	}()
	storetest.WaitForLock(t, p.DB)
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-claimed; !errors.Is(err, errStale) {
		t.Errorf("Claim = %v, want it stale", err)
	}
}

// What a unit says of its connection makes the cached record out of date.
func TestWhatAUnitSaysOfItsConnectionMakesAClaimStale(t *testing.T) {
	twins := twinsAt(t, storetest.NewDatabase(t), storetest.StartMiniredis(t).URL())
	id, unit := storetest.AddVehicle(t, twins.postgres.DB, 1)
	begin := time.Now().Add(-time.Hour)
	says := func(status telematics.PresenceStatus, after time.Duration) {
		t.Helper()
		at := begin.Add(after)
		presence := telematics.Presence{Status: status, Session: "one", At: at}
		if _, err := twins.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: at, Presence: &presence}}); err != nil {
			t.Fatal(err)
		}
	}
	isStale := func() bool {
		t.Helper()
		twin, ok := twins.records.find(id)
		if !ok {
			t.Fatal("the record is not cached")
		}
		c := brokertest.NewCommand(id, telematics.Lock)
		c.Version = twin.Version
		claim, err := twins.postgres.Claim(t.Context(), c)
		if errors.Is(err, errStale) {
			return true
		}
		if err != nil || !claim.Taken() {
			t.Fatalf("Claim = %+v, %v", claim, err)
		}
		if _, _, err = twins.postgres.Settle(t.Context(), delivery.Settlement{Command: c.ID, State: telematics.Expired, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		return false
	}
	says(telematics.Online, 0)
	if _, err := twins.Record(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	says(telematics.Online, time.Minute) // again, in the same session
	if _, err := twins.postgres.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: time.Now(), Report: statusAt(begin, 1)}}); err != nil {
		t.Fatal(err)
	}
	if isStale() {
		t.Error("stale after signs of life alone")
	}
	says(telematics.Offline, 2*time.Minute)
	if !isStale() {
		t.Error("not stale after a last will")
	}
	if _, err := twins.Twin(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if twin, _ := twins.records.find(id); twin.Contact.Status != telematics.Offline {
		t.Errorf("read, and cached as %+v", twin.Contact)
	}
	if err := twins.postgres.ForgetContacts(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !isStale() {
		t.Error("not stale after all contacts were forgotten")
	}
}

// A cached record does not say to which vehicle a unit belongs before a claim has found it to be true.
func TestClaim_ConfirmedRecordRefreshesOwnerOfUnit(t *testing.T) {
	twins := twinsAt(t, storetest.NewDatabase(t), storetest.StartMiniredis(t).URL())
	id, unit := storetest.AddVehicle(t, twins.postgres.DB, 1)
	if _, err := twins.Record(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	owned, ok := twins.directory.owner(unit)
	if !ok {
		t.Error("a record that is read does not tell")
	}
	twins.directory.known.Purge() // as time does
	o := delivery.Observation{Unit: unit, At: time.Now(), Report: statusAt(time.Now().Add(-time.Hour), 1)}
	twin, err := twins.Resolve(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if twins.ObserveAndFlush(o) != nil {
		t.Error("the cached record was used before it was confirmed")
	}
	c := brokertest.NewCommand(id, telematics.Lock)
	c.Version = twin.Version
	if claim, err := NewCommands(twins.postgres, twins).Claim(t.Context(), &c, nil); err != nil || !claim.Taken() {
		t.Fatalf("Claim = %+v, %v", claim, err)
	}
	if again, ok := twins.directory.owner(unit); !ok || !reflect.DeepEqual(again, owned) {
		t.Errorf("confirmed as of %+v, want %+v", again, owned)
	}
	if there := twins.ObserveAndFlush(o); there == nil || !<-there {
		t.Error("the report is not brought")
	}
}

// A vehicle takes its time to answer. Who was asked is known for that long, and who is told of the answer is looked up anew.
func TestAReportThatAnswersIsBroughtForTheVehicleThatWasAsked(t *testing.T) {
	twins := twinsAt(t, storetest.NewDatabase(t), storetest.StartMiniredis(t).URL())
	asked, unit := storetest.AddVehicle(t, twins.postgres.DB, 1)
	other, _ := storetest.AddVehicle(t, twins.postgres.DB, 1)
	if _, err := twins.Record(t.Context(), asked); err != nil {
		t.Fatal(err)
	}
	age := func(by time.Duration) {
		aged, _ := twins.directory.known.Peek(unit)
		aged.until = time.Now().Add(-by)
		twins.directory.known.Add(unit, aged)
	}
	age(telematics.MaxBudget - 10*time.Second)
	o := delivery.Observation{Unit: unit, At: time.Now(), Report: statusAt(time.Now().Add(-time.Hour), 1)}
	for vehicle, want := range map[telematics.VehicleID]bool{0: false, other: false, asked: true} {
		o.Asked = vehicle
		there := twins.ObserveAndFlush(o)
		if (there != nil) != want {
			t.Errorf("unit of vehicle %d, asked as %d: brought %v, want %v", asked, vehicle, there != nil, want)
		}
		if there != nil && !<-there {
			t.Error("Redis does not have it")
		}
	}
	if age(telematics.MaxBudget); twins.ObserveAndFlush(o) != nil {
		t.Error("who was asked is known for longer than anybody waits")
	}
}

func TestRecords_CacheIsBounded(t *testing.T) {
	r := newRecords()
	for id := range telematics.VehicleID(recordsSize + 10) {
		r.keep(&telematics.Twin{Vehicle: telematics.Vehicle{ID: id}, Version: 1})
	}
	if n := r.cached.Len(); n != recordsSize {
		t.Errorf("%d are cached, want %d", n, recordsSize)
	}
	if _, ok := r.find(0); ok {
		t.Error("the one that was not used for longest is still cached")
	}
}

// A claim that fails has not confirmed the record by which its order was accepted.
func TestClaim_FailureRemovesCachedRecord(t *testing.T) {
	twins := twinsAt(t, storetest.NewDatabase(t), storetest.StartMiniredis(t).URL())
	id, _ := storetest.AddVehicle(t, twins.postgres.DB, 1)
	twin, err := twins.Resolve(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	c := brokertest.NewCommand(id, telematics.Lock)
	c.Version = twin.Version
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewCommands(twins.postgres, twins).Claim(ended, &c, nil); err == nil {
		t.Fatal("claimed in a context that has ended")
	}
	if twin, cached := twins.records.find(id); cached {
		t.Errorf("cached %+v", twin)
	}
}

func TestTwinsBelongs_ReadsTheRecordUnlessTheCachedOneIsTheAgencys(t *testing.T) {
	twins := twinsAt(t, storetest.NewDatabase(t), storetest.StartMiniredis(t).URL())
	fleetIn(t, twins.postgres)
	id, _ := storetest.AddVehicle(t, twins.postgres.DB, 1)
	belongs := func(agency telematics.AgencyID, want bool) {
		t.Helper()
		if got, err := twins.Belongs(t.Context(), id, agency); err != nil || got != want {
			t.Errorf("agency %d: %v %v, want %v", agency, got, err, want)
		}
	}
	belongs(1, true)
	belongs(2, false)
	twins.postgres.Pool.MustExec(`update vehicles set agency_id = 2 where id = $1`, id)
	belongs(1, true) // until an order, or a request of another agency, reads the record
	belongs(2, true)
	belongs(1, false)
	if got, err := twins.Belongs(t.Context(), 1<<40, 1); got || err == nil {
		t.Errorf("no such vehicle: %v %v", got, err)
	}
}
