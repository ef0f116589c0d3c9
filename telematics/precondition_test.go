package telematics

import (
	"testing"
	"time"
)

// [CMD-7]
func TestAMovingVehicleIsNeitherImmobilizedNorOpened(t *testing.T) {
	forbidden := map[Action]bool{
		DisableDriving: true, LockAndDisableDriving: true,
		Unlock: true, UnlockAndEnableDriving: true, OpenTopCase: true,
	}
	at := func(kmh float64, age time.Duration) Snapshot {
		return Snapshot{SpeedKmh: {Value: kmh, At: now.Add(-age)}}
	}
	blind := map[Action]bool{DisableDriving: true, LockAndDisableDriving: true}
	cases := []struct {
		name     string
		snapshot Snapshot
		want     map[Action]bool
	}{
		{"at 50 km/h", at(50, time.Second), forbidden},
		{"just above walking pace", at(5.1, 0), forbidden},
		{"at walking pace", at(5, 0), nil},
		{"standing", at(0, 0), nil},
		{"at 50 km/h as far as a reading of 30 s tells", at(50, 30*time.Second), forbidden},
		{"at 50 km/h a while ago", at(50, 30*time.Second+time.Millisecond), nil},
		{"with a speed that the unit no longer knows", Snapshot{SpeedKmh: {At: now}}, blind},
		{"whose speed was lost a while ago", Snapshot{SpeedKmh: {At: now.Add(-time.Minute)}}, nil},
		{"never heard of", nil, nil},
	}
	for _, c := range cases {
		for action := range lanes {
			err := c.snapshot.Forbids(action, now)
			if want := c.want[action]; (err != nil) != want {
				t.Errorf("a vehicle %s: %s forbidden: %v, want %t", c.name, action, err, want)
			}
			if err != nil && (err.Code != VehicleStateConflict || err.Detail != Moving || err.Outcome != NotExecuted || !err.Retryable) {
				t.Errorf("%+v", err)
			}
		}
	}
}
