package twins

import (
	"context"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestUpdate_LosesNoWriteSinceTheRead(t *testing.T) {
	ctx := t.Context()
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	id, unit := add()
	report := func(at time.Time, field telematics.Field, value any) {
		t.Helper()
		_, err := p.Observe(
			ctx,
			[]delivery.Observation{
				{Unit: unit, At: at, Report: &telematics.Report{At: at, Values: map[telematics.Field]any{field: value}}},
			},
		)
		require.NoError(t, err)
	}
	twin := func() telematics.Twin {
		t.Helper()
		twin, err := p.Twin(ctx, id)
		require.NoError(t, err)
		return twin
	}
	ahead := func(of telematics.Twin, at time.Time) telematics.Twin {
		of.Snapshot = telematics.Merge(of.Snapshot, telematics.Report{At: at, Values: map[telematics.Field]any{telematics.IsLocked: true}})
		of.Contact = of.Contact.Heard(at)
		return of
	}
	for name, meanwhile := range map[string]func(){
		"no write": func() {},
		"a report": func() { report(morning.Add(2*time.Minute), telematics.Ignition, "on") },
	} {
		id, unit = add()
		report(morning, telematics.Ignition, "off")
		before := twin()
		meanwhile()
		want := twin().Snapshot
		if err := p.update(ctx, before, ahead(before, morning.Add(time.Minute))); err != nil {
			t.Fatal(name, err)
		}
		got := twin()
		if locked := got.Snapshot.Flag(telematics.IsLocked); locked == nil || !*locked {
			t.Errorf("%s meanwhile: the update was not stored", name)
		}
		assert.Equal(t, *got.Snapshot.Text(telematics.Ignition), *want.Text(telematics.Ignition), "%s meanwhile: ignition", name)
		if got.Contact.LastSeen.Before(morning.Add(time.Minute)) {
			t.Errorf("%s meanwhile: last seen %v, want not before the update", name, got.Contact.LastSeen)
		}
	}
}

// afterRead is a hook of Redis that runs a function once, between a read and what follows it.
type afterRead struct{ run func() }

func (afterRead) DialHook(next goredis.DialHook) goredis.DialHook          { return next }
func (afterRead) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }

func (h *afterRead) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		err := next(ctx, cmds)
		if run := h.run; run != nil && cmds[0].Name() == "hgetall" {
			h.run = nil
			run()
		}
		return err
	}
}

// A vehicle that reports seldom leaves the cache when its state is in Redis.
func TestTwin_HasAReportThatIsFlushedMeanwhile(t *testing.T) {
	for name, read := range map[string]func(*Twins, telematics.VehicleID) (telematics.Twin, error){
		"one": func(twins *Twins, id telematics.VehicleID) (telematics.Twin, error) {
			return twins.Twin(t.Context(), id)
		},
		"page": func(twins *Twins, _ telematics.VehicleID) (telematics.Twin, error) {
			page, err := twins.Twins(t.Context(), telematics.VehicleQuery{Page: telematics.Page{Limit: 2}})
			return page[len(page)-1], err
		},
	} {
		t.Run(name, func(t *testing.T) {
			twins, id, unit := withoutRun(t, storetest.StartMiniredis(t).URL())
			observed(t, twins, unit, statusAt(time.Now().Add(-time.Hour), 1))
			// So that the flush does not share the read of one vehicle.
			_, another := storetest.AddVehicle(t, twins.stored.DB, 2)
			observed(t, twins, another, statusAt(time.Now().Add(-time.Hour), 1))
			twins.redis.db.Client.AddHook(&afterRead{func() { twins.flushRedis(context.Background(), nil) }})
			twin, err := read(twins, id)
			if got := mileage(t, twin, err); got != 1 || twins.queue.size() > 0 {
				t.Errorf("the mileage reads %v, %d states unwritten; want 1, and none", got, twins.queue.size())
			}
		})
	}
}

func TestQueue_FindsWhatIsBeingFlushed(t *testing.T) {
	q, owner := newQueue(), owner{vehicle: 1}
	at := time.Now().Truncate(time.Millisecond)
	want := func(what string, km float64) {
		t.Helper()
		s, found := q.find(1)
		if got := s.snapshot.Number(telematics.MileageKm); found != (km >= 0) || found && *got != km {
			t.Errorf("%s: %v, found %t; want %v", what, s.snapshot, found, km)
		}
	}
	add := func(n int) {
		q.add(delivery.Observation{Unit: "unit", At: at, Report: statusAt(at, n)}, owner, nil)
	}
	want("empty", -1)
	add(1)
	add(2)
	want("queued", 2)
	flushing := q.take()
	want("being flushed", 2)
	add(1)
	want("an older report meanwhile", 2)
	q.putBack(flushing[0])
	want("not flushed", 2)
	flushing = q.take()
	add(3)
	want("a newer report meanwhile", 3)
	q.done(flushing[0])
	want("flushed", 3)
	q.done(q.take()[0])
	want("all is flushed", -1)
}
