package commands

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/idempotency"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func newBulk(vehicles ...telematics.VehicleID) telematics.Bulk {
	return telematics.Bulk{
		ID: uuid.New(), Action: telematics.AttentionSignal,
		Attention: &telematics.Attention{Signal: telematics.Horn, Duration: time.Second}, Vehicles: vehicles,
		Actor: telematics.Actor{Subject: "admin-7", Role: telematics.Admin, Agency: 1}, RequestID: uuid.New(),
		Requested: time.Now().UTC().Truncate(time.Millisecond),
	}
}

func TestBulk_ABulkIsReadBackWithWhatBecameOfEachVehicle(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	asked, _ := add()
	away, _ := add()
	b := newBulk(asked, away, 4711, 4712)
	if taken, err := p.OpenBulk(t.Context(), b); taken || err != nil {
		t.Fatalf("OpenBulk = %v, %v", taken, err)
	}
	c := brokertest.NewCommand(asked, telematics.AttentionSignal)
	c.Bulk = b.ID
	p.mustClaim(t, c)
	offline := telematics.UnitOffline(telematics.Contact{}, b.Requested)
	refused := []telematics.BulkItem{
		{Vehicle: asked, Command: &c}, {Vehicle: away, Refusal: offline}, {Vehicle: 4711, Refusal: telematics.NoSuchVehicle(4711)},
	}
	for range 2 { // the second call changes nothing
		require.NoError(t, p.RefuseBulk(t.Context(), b.ID, refused))
	}
	got, err := p.Bulk(t.Context(), b.ID)
	require.NoError(t, err)
	items := got.Items
	got.Items = nil
	assert.DeepEqual(t, got, b, "bulk")
	if len(items) != 4 || items[0].Command == nil || items[0].Command.ID != c.ID || items[0].Command.Bulk != b.ID ||
		items[0].Refusal != nil {
		t.Fatalf("items %+v, want 4, the first one with its command", items)
	}
	if !reflect.DeepEqual(items[1], refused[1]) || !reflect.DeepEqual(items[2], refused[2]) {
		t.Errorf("refusals %+v, %+v; want them as stored", items[1].Refusal, items[2].Refusal)
	}
	if items[3].Command != nil || items[3].Refusal != nil {
		t.Errorf("an item that is not handled yet: %+v, want neither a command nor a refusal", items[3])
	}
	var unknown *telematics.Error
	if _, err := p.Bulk(t.Context(), uuid.New()); !errors.As(err, &unknown) || unknown.Code != telematics.BulkNotFound {
		t.Errorf("an unknown bulk: %v, want BulkNotFound", err)
	}
}

func TestBulk_VehicleNotHandledByADeadInstanceIsRefused(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	for _, test := range []struct {
		age     time.Duration
		refused bool
	}{
		// The instance may still create the last command: three calls of the record, and another
		// clock.
		{telematics.BulkFor + 10*time.Second, false},
		{telematics.BulkFor + 20*time.Second, true},
	} {
		b := newBulk(1)
		b.Requested = b.Requested.Add(-test.age)
		_, err := p.OpenBulk(t.Context(), b)
		require.NoError(t, err)
		got, err := p.Bulk(t.Context(), b.ID)
		if err != nil || (got.Items[0].Refusal != nil) != test.refused {
			t.Fatalf("after %v: %+v, %v; want it refused: %t", test.age, got.Items, err, test.refused)
		}
		if r := got.Items[0].Refusal; r != nil && r.Outcome != telematics.NotExecuted {
			t.Errorf("refusal %+v, want not executed", r)
		}
	}
}

func TestBulk_AKeyStandsForABulkOrACommand(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	vehicle, _ := add()
	b := newBulk(vehicle)
	b.Key = brokertest.NewKey()
	for range 2 { // also by a driver that lost the reply
		if taken, err := p.OpenBulk(t.Context(), b); taken || err != nil {
			t.Fatalf("OpenBulk = %v, %v", taken, err)
		}
	}
	again := newBulk(vehicle)
	again.Key = b.Key
	if taken, err := p.OpenBulk(t.Context(), again); !taken || err != nil {
		t.Errorf("OpenBulk with the same key = %v, %v; want the key taken", taken, err)
	}
	c := brokertest.NewCommand(vehicle, telematics.Lock)
	c.Key = b.Key
	if claim, err := p.Claim(t.Context(), c); !claim.KeyTaken || err != nil {
		t.Errorf("Claim with the same key = %+v, %v; want the key taken", claim, err)
	}
	made, found, err := p.FindByKey(t.Context(), *b.Key)
	if err != nil || !found || made.Bulk != b.ID || made.Command.ID != telematics.NoCommand || made.Fingerprint != b.Key.Fingerprint {
		t.Errorf("FindByKey = %+v, %v, %v; want the bulk", made, found, err)
	}
}

// A bulk that gave no vehicle a command executed nothing, so its repetition is executed.
func TestBulk_ARefusedBulkFreesItsKey(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	vehicle, _ := storetest.AddVehicle(t, p.DB, 1)
	b := newBulk(vehicle)
	for name, test := range map[string]struct {
		before   func(b telematics.Bulk)
		replayed bool
	}{
		"not handled yet": {func(b telematics.Bulk) {}, true},
		"abandoned": {func(b telematics.Bulk) {
			storetest.Exec(t, p.Pool, `update bulks set requested_at = requested_at - interval '1 minute' where id = $1`, b.ID)
		}, false},
		"refused": {func(b telematics.Bulk) {
			refused := telematics.BulkItem{Vehicle: vehicle, Refusal: telematics.NoSuchVehicle(vehicle)}
			require.NoError(t, p.RefuseBulk(t.Context(), b.ID, []telematics.BulkItem{refused}))
		}, false},
		"started": {func(b telematics.Bulk) {
			c := brokertest.NewCommand(vehicle, telematics.Lock)
			c.Bulk = b.ID
			p.mustClaim(t, c)
		}, true},
	} {
		b.ID, b.Key = uuid.New(), brokertest.NewKey()
		_, err := p.OpenBulk(t.Context(), b)
		require.NoError(t, err)
		test.before(b)
		started := 0
		many := broker.Many{
			Bulks: p, FindByKey: p.FindByKey, Record: func(context.Context, telematics.Activity) {}, Now: time.Now, Logger: slog.Default(),
			Start: func(context.Context, *delivery.Order) (delivery.Receipt, error) {
				started++
				return delivery.Receipt{Command: &telematics.Command{}}, nil
			},
		}
		again := b
		again.ID = uuid.New()
		_, replayed, err := many.Send(t.Context(), &delivery.BulkOrder{Bulk: again})
		if err != nil || replayed != test.replayed || replayed == (started == 1) {
			t.Errorf("%s: replayed %v with %d started, %v; want replayed %v", name, replayed, started, err, test.replayed)
		}
	}
}

func TestKey_ExpiresAfterADay(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	var keys []*telematics.IdempotencyKey
	for range 3 {
		b := newBulk(1)
		b.Key = brokertest.NewKey()
		keys = append(keys, b.Key)
		_, err := p.OpenBulk(t.Context(), b)
		require.NoError(t, err)
	}
	for _, k := range keys[:2] {
		storetest.Exec(t, p.Pool, `update idempotency_keys set made_at = made_at - interval '24 hours'
			where key = $1`, k.Key)
	}
	if made, found, err := p.FindByKey(t.Context(), *keys[0]); found || err != nil {
		t.Errorf("a day later the key is found: %+v, %v", made, err)
	}
	again := newBulk(1)
	again.Key = keys[0]
	if taken, err := p.OpenBulk(t.Context(), again); taken || err != nil {
		t.Errorf("OpenBulk with the key a day later = %v, %v; want it free", taken, err)
	}
	if more, err := idempotency.Forget(t.Context(), p.DB, 1); !more || err != nil {
		t.Errorf("Forget = %v, %v; want keys[1] removed, and more to try", more, err)
	}
	if more, err := idempotency.Forget(t.Context(), p.DB, 1); more || err != nil {
		t.Errorf("Forget = %v, %v; want nothing left to remove", more, err)
	}
	if _, found, err := p.FindByKey(t.Context(), *keys[2]); !found || err != nil {
		t.Errorf("a recent key is not found: %v", err)
	}
	for _, strange := range []string{"\x00", "\xff"} {
		key := telematics.IdempotencyKey{Key: strange, Fingerprint: sha256.Sum256(nil)}
		if _, found, err := p.FindByKey(t.Context(), key); found || err != nil {
			t.Errorf("the invalid key %q: found %v, %v", strange, found, err)
		}
	}
}

func TestBulks_AreListedNewestFirstWithTheirOutcomes(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	asked, _ := add()
	away, _ := add()
	var all []telematics.Bulk
	for i := range 3 {
		b := newBulk(asked, away, 4711)
		b.ID = uuid.Must(uuid.NewV7())
		if i == 1 {
			b.Actor.Agency = 0
		}
		if i == 2 { // its instance has died
			b.Requested = b.Requested.Add(-time.Hour)
		}
		if taken, err := p.OpenBulk(t.Context(), b); taken || err != nil {
			t.Fatalf("OpenBulk = %v, %v", taken, err)
		}
		all = append(all, b)
	}
	c := brokertest.NewCommand(asked, telematics.AttentionSignal)
	c.Bulk = all[0].ID
	p.mustClaim(t, c)
	refused := []telematics.BulkItem{{Vehicle: away, Refusal: telematics.UnitOffline(telematics.Contact{}, time.Now())}}
	require.NoError(t, p.RefuseBulk(t.Context(), all[0].ID, refused))
	list := func(q telematics.BulkQuery) (found []telematics.CountedBulk) {
		t.Helper()
		found, err := p.Bulks(t.Context(), q)
		require.NoError(t, err)
		return found
	}
	found := list(telematics.BulkQuery{})
	if len(found) != 3 || !reflect.DeepEqual([]telematics.Bulk{found[2].Bulk, found[1].Bulk, found[0].Bulk}, all) {
		t.Fatalf("bulks %+v, want %+v, the newest first", found, all)
	}
	for i, want := range []map[telematics.Outcome]int{
		{telematics.NotExecuted: 3}, {telematics.NotExecuted: 0, telematics.Undecided: 3},
		{telematics.NotExecuted: 1, telematics.Undecided: 2},
	} {
		assert.DeepEqual(t, found[i].Outcomes, want, "bulk %d", i)
	}
	assert.Equal(t, len(list(telematics.BulkQuery{Agency: 1})), 2, "bulks of the agency")
	if next := list(telematics.BulkQuery{Before: all[2].ID, Limit: 1}); len(next) != 1 || next[0].ID != all[1].ID {
		t.Errorf("the next page: %+v", next)
	}
}

// A command of which Postgres did not reply was refused, and may be on record all the same.
func TestBulk_CommandThatWasBelievedLostCountsOnce(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	vehicle, unit := storetest.AddVehicle(t, p.DB, 1)
	b := newBulk(vehicle)
	if taken, err := p.OpenBulk(t.Context(), b); taken || err != nil {
		t.Fatalf("OpenBulk = %v, %v", taken, err)
	}
	c := brokertest.NewCommand(vehicle, telematics.AttentionSignal)
	c.Bulk, c.Unit = b.ID, unit
	p.mustClaim(t, c)
	require.NoError(t, p.RefuseBulk(t.Context(), b.ID, []telematics.BulkItem{{
		Vehicle: vehicle, Refusal: telematics.Unavailable("Postgres", errors.New("timeout")),
	}}))
	expired := delivery.Settlement{Command: c.ID, State: telematics.Expired, At: time.Now()}
	if _, ok, err := p.Settle(t.Context(), expired); !ok || err != nil {
		t.Fatalf("Settle = %t, %v", ok, err)
	}
	listed, err := p.Bulks(t.Context(), telematics.BulkQuery{})
	require.NoError(t, err)
	assert.DeepEqual(t, listed[0].Outcomes, map[telematics.Outcome]int{telematics.NotExecuted: 1, telematics.Undecided: 0}, "listed")
	read, err := p.Bulk(t.Context(), b.ID)
	require.NoError(t, err)
	if item := read.Items[0]; item.Command == nil || item.Command.State != telematics.Expired || item.Refusal != nil {
		t.Errorf("read as %+v, want the command alone", item)
	}
}
