package store

import (
	"testing"
	"time"

	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestThatThereWasAValueIsRememberedForGood(t *testing.T) {
	address := storetest.NewDatabase(t)
	p := open(t, address)
	id, unit := storetest.AddVehicle(t, p.DB, 1)
	at := morning.Truncate(time.Millisecond)
	for i, values := range []map[telematics.Field]any{
		{telematics.SpeedKmh: 5.0, telematics.KeyStatus: nil, telematics.OilLife: 61.0},
		{telematics.SpeedKmh: nil, telematics.KeyStatus: nil},
		{telematics.SpeedKmh: nil},
	} {
		report := telematics.Report{At: at.Add(time.Duration(i) * time.Second), Values: values}
		if _, err := p.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: morning, Report: &report}}); err != nil {
			t.Fatal(err)
		}
	}
	twin, err := open(t, address).Twin(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for field, want := range map[telematics.Field]bool{telematics.SpeedKmh: true, telematics.KeyStatus: false, telematics.OilLife: true, telematics.Gear: false} {
		if got := twin.Snapshot[field].Ever(); got != want {
			t.Errorf("%s: ever a value %v, want %v", field, got, want)
		}
	}
	if twin.Snapshot.Number(telematics.SpeedKmh) != nil {
		t.Error("a speed that is no longer known is told")
	}
}
