package vehicles

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

var marienplatz = telematics.Address{Position: telematics.Position{Latitude: 48.13743, Longitude: 11.57549}, Text: "Marienplatz 1, München"}

func TestKeepAddress_NeedsTheLease(t *testing.T) {
	address := storetest.NewDatabase(t)
	one, two := open(t, address), open(t, address)
	mine, theirs := uuid.New(), uuid.New()
	ctx := t.Context()
	if failures, taken, err := one.AcquireLease(ctx, mine, time.Minute); !taken || failures != 0 || err != nil {
		t.Fatalf("AcquireLease = %d, %v, %v", failures, taken, err)
	}
	if _, taken, err := two.AcquireLease(ctx, theirs, time.Minute); taken || err != nil {
		t.Errorf("a second instance got the lease: %v, %v", taken, err)
	}
	if kept, err := two.KeepAddress(ctx, theirs, marienplatz, time.Minute); kept || err != nil {
		t.Errorf("an address was stored without the lease: %v, %v", kept, err)
	}
	if err := two.ReleaseLease(ctx, theirs, 9, 0); err != nil {
		t.Error(err)
	}
	if kept, err := one.KeepAddress(ctx, mine, marienplatz, time.Minute); !kept || err != nil {
		t.Errorf("KeepAddress = %v, %v; want it stored", kept, err)
	}
	if kept, err := one.KeepAddress(ctx, mine, telematics.Address{Position: telematics.Position{Latitude: -90, Longitude: 180}}, time.Minute); !kept || err != nil {
		t.Errorf("KeepAddress of a position without an address = %v, %v; want it stored", kept, err)
	}
	all, err := two.Addresses(ctx, 0, 10)
	if err != nil || len(all) != 2 || all[0].Position != marienplatz.Position || all[0].Text != marienplatz.Text || all[1].Text != "" || all[0].ID >= all[1].ID {
		t.Fatalf("Addresses = %+v, %v; want both, in order", all, err)
	}
	if since := time.Since(all[0].AskedAt); since < 0 || since > time.Minute {
		t.Errorf("the address is dated %v ago, want at most a minute", since)
	}
	if later, err := two.Addresses(ctx, all[0].ID, 10); err != nil || len(later) != 1 || later[0] != all[1] {
		t.Errorf("addresses after the first: %+v, %v", later, err)
	}
	if last, err := two.Addresses(ctx, 0, 1); err != nil || len(last) != 1 || last[0] != all[1] {
		t.Errorf("the newest address: %+v, %v", last, err)
	}
}

func TestAcquireLease_AfterExpiryOrThePauseOfARelease(t *testing.T) {
	address := storetest.NewDatabase(t)
	one, two := open(t, address), open(t, address)
	mine, theirs := uuid.New(), uuid.New()
	ctx := t.Context()
	const hold = 300 * time.Millisecond
	before := time.Now()
	if _, taken, err := one.AcquireLease(ctx, mine, hold); !taken || err != nil {
		t.Fatal(taken, err)
	}
	storetest.Eventually(t, "the lease has expired", func() bool {
		_, taken, err := two.AcquireLease(ctx, theirs, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return taken
	})
	if waited := time.Since(before); waited < hold {
		t.Errorf("the lease was free after %v, want at least %v", waited, hold)
	}
	if kept, err := one.KeepAddress(ctx, mine, marienplatz, time.Minute); kept || err != nil {
		t.Errorf("an address was stored after the lease was lost: %v, %v", kept, err)
	}
	if err := one.ReleaseLease(ctx, mine, 0, 0); err != nil {
		t.Error(err)
	}
	if _, taken, _ := one.AcquireLease(ctx, mine, hold); taken {
		t.Error("the former holder released the other's lease")
	}
	before = time.Now()
	if err := two.ReleaseLease(ctx, theirs, 3, hold); err != nil {
		t.Error(err)
	}
	storetest.Eventually(t, "the pause after failures is over", func() bool {
		failures, taken, err := one.AcquireLease(ctx, mine, time.Minute)
		if taken && failures != 3 || err != nil {
			t.Errorf("AcquireLease returned %d failures, %v; want 3", failures, err)
		}
		return taken
	})
	if waited := time.Since(before); waited < hold {
		t.Errorf("got the lease after %v, want at least %v", waited, hold)
	}
	if _, err := one.KeepAddress(ctx, mine, marienplatz, 0); err != nil {
		t.Error(err)
	}
	if failures, taken, err := two.AcquireLease(ctx, theirs, time.Minute); failures != 0 || !taken || err != nil {
		t.Errorf("after an address: %d failures, %v, %v; want 0 and the lease", failures, taken, err)
	}
}

func TestAcquireLease_OneOfManyCallersGetsIt(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	var mu sync.Mutex
	had := 0
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			_, taken, err := p.AcquireLease(t.Context(), uuid.New(), time.Minute)
			if err != nil {
				t.Error(err)
			}
			if taken {
				mu.Lock()
				had++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if had != 1 {
		t.Errorf("%d callers have the lease, want 1", had)
	}
}

func TestForgetAddresses_RemovesOldAndSurplusOnes(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	ctx := t.Context()
	if _, err := p.Pool.Exec(`
		insert into addresses (latitude, longitude, address, asked_at)
		select 48, n, 'number ' || n, clock_timestamp() - case when n <= 3 then interval '31 days' else interval '0' end
		from generate_series(1, 10) n`); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ keep, left int }{{100, 7}, {7, 7}, {5, 5}, {5, 5}, {0, 0}} {
		if err := p.ForgetAddresses(ctx, 30*24*time.Hour, c.keep); err != nil {
			t.Fatal(err)
		}
		all, err := p.Addresses(ctx, 0, 100)
		if err != nil || len(all) != c.left {
			t.Errorf("keep %d: %d addresses left, %v", c.keep, len(all), err)
		}
		for i, a := range all {
			if want := fmt.Sprintf("number %d", 10-c.left+1+i); a.Text != want {
				t.Errorf("keep %d: %q, want %q", c.keep, a.Text, want)
			}
		}
	}
}

func TestParked_HasStandingVehiclesWithAPosition(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	for i, values := range []map[telematics.Field]any{
		{telematics.Latitude: 48.1, telematics.Longitude: 11.1, telematics.Ignition: "off", telematics.SpeedKmh: 0.0},
		{telematics.Latitude: 48.2, telematics.Longitude: 11.2, telematics.Ignition: "on", telematics.SpeedKmh: 0.0},
		{telematics.Latitude: 48.3, telematics.Longitude: 11.3}, // without a speed
		{telematics.Latitude: 48.4, telematics.Longitude: 11.4, telematics.Ignition: "on", telematics.SpeedKmh: 50.0},
		{telematics.Latitude: 48.5},
		{telematics.Latitude: nil, telematics.Longitude: nil},
		nil,
	} {
		id, _ := add()
		if values == nil {
			continue
		}
		report := telematics.Report{At: time.Now(), Values: values}
		fields, err := EncodeSnapshot(telematics.Merge(nil, report))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Pool.Exec(`insert into snapshots (vehicle_id, fields) values ($1, $2::jsonb)`, id, pg.JSONRecords(fields)); err != nil {
			t.Fatalf("vehicle %d: %v", i+1, err)
		}
	}
	got, err := p.Parked(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[telematics.Parked]bool{
		{Agency: 1, Position: telematics.Position{Latitude: 48.1, Longitude: 11.1}, Off: true}: true,
		{Agency: 1, Position: telematics.Position{Latitude: 48.2, Longitude: 11.2}}:            true,
		{Agency: 1, Position: telematics.Position{Latitude: 48.3, Longitude: 11.3}}:            true,
	}
	for _, parked := range got {
		if !want[parked] {
			t.Errorf("unexpected as parked: %+v", parked)
		}
		delete(want, parked)
	}
	if len(want) > 0 {
		t.Errorf("missing as parked: %+v", want)
	}
}

func BenchmarkParked(b *testing.B) {
	p := open(b, storetest.NewDatabase(b))
	if _, err := p.Pool.Exec(`
		insert into agencies values (1, 'MUC', 'Isar Mobility');
		insert into vehicles select n, 1, 'available', 'electric', 'M ' || n, '', '', 2024, '', '', '', '{}', '{}' from generate_series(1, 10000) n;
		insert into snapshots (vehicle_id, fields) select n, (
			select jsonb_object_agg(f, jsonb_build_object('v', case f
				when 'location.latitude' then to_jsonb(48 + random()) when 'location.longitude' then to_jsonb(11 + random())
				when 'telemetry.speed_kmh' then to_jsonb(0) when 'telemetry.ignition' then to_jsonb('off'::text)
				else to_jsonb('a value ' || n || random()) end, 'at', 1767348000000 + n))
			from unnest(array['location.latitude', 'location.longitude', 'telemetry.speed_kmh', 'telemetry.ignition'] ||
				array(select 'telemetry.field_' || i from generate_series(1, 36) i)) f)
		from generate_series(1, 10000) n`); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	for range b.N {
		parked, err := p.Parked(b.Context())
		if err != nil || len(parked) != 10_000 {
			b.Fatal(len(parked), err)
		}
	}
}
