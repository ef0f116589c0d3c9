package app

import (
	"context"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/store/alerts"
	"motorpool/store/redis"
	"motorpool/store/storetest"
	"motorpool/store/twins"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// The last reports of an instance that stops are handled after its alerts have ended.
func TestAlarmingTwins_WriteTheLastAlarms(t *testing.T) {
	db := storetest.Open(t, storetest.NewDatabase(t))
	cache, err := redis.New(redis.Config{URL: storetest.StartMiniredis(t).URL()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, cache.Close()) })
	_, unit := storetest.AddVehicle(t, db, 1)
	stored := alerts.New(alerts.Config{DB: db})
	stopping := alarmingTwins{twins.New(twins.Config{DB: db, Redis: cache, Vehicles: vehicles.New(db)}), stored}
	ended, end := context.WithCancel(t.Context())
	end()
	require.NoError(t, stored.Run(ended))
	_, err = stopping.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: time.Now(), Report: &telematics.Report{
		At: time.Now().Truncate(time.Millisecond), Alarms: []telematics.Alarm{{Kind: "crash"}},
	}}})
	require.NoError(t, err)
	require.NoError(t, stopping.Run(ended, func([]telematics.Change) {}))
	if open, err := stored.Open(t.Context()); err != nil || len(open) != 1 || open[0].Facts["kind"] != "crash" {
		t.Errorf("open alerts: %+v, %v; want the alarm", open, err)
	}
}
