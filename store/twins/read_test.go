package twins

import (
	"testing"
	"time"

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
		_, err := p.Observe(ctx, []delivery.Observation{{Unit: unit, At: at, Report: &telematics.Report{At: at, Values: map[telematics.Field]any{field: value}}}})
		if err != nil {
			t.Fatal(err)
		}
	}
	twin := func() telematics.Twin {
		t.Helper()
		twin, err := p.Twin(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
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
		if *got.Snapshot.Text(telematics.Ignition) != *want.Text(telematics.Ignition) {
			t.Errorf("%s meanwhile: ignition %s, want %s", name, *got.Snapshot.Text(telematics.Ignition), *want.Text(telematics.Ignition))
		}
		if got.Contact.LastSeen.Before(morning.Add(time.Minute)) {
			t.Errorf("%s meanwhile: last seen %v, want not before the update", name, got.Contact.LastSeen)
		}
	}
}
