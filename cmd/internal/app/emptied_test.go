package app_test

import (
	"testing"
	"time"

	"motorpool/telematics"
)

// mileage returns what an instance says of a vehicle's odometer; -1: nothing yet.
func (i *instance) mileage(vehicle string) float64 {
	i.Helper()
	var status struct {
		Telemetry struct {
			MileageKm *float64 `json:"mileage_km"`
		} `json:"telemetry"`
	}
	if r := i.get("/api/v1/admin/vehicles/"+vehicle+"/status", &status); r.status != 200 {
		i.Fatalf("status of %s: %d %+v", vehicle, r.status, r.Error)
	}
	if status.Telemetry.MileageKm == nil {
		return -1
	}
	return *status.Telemetry.MileageKm
}

func TestSnapshotsComeBackFromPostgresWhereRedisRestartsEmpty(t *testing.T) {
	t.Parallel()
	s := realStack(t, 1)
	instances := []*instance{s.serve(), s.serve()}
	var km float64
	report := func() {
		km++
		s.whisper("car-1", telematics.TelemetryChannel, telematics.EncodeReport(telematics.Report{
			At: time.Now(), Values: map[telematics.Field]any{telematics.MileageKm: km, telematics.IsLocked: int(km)%2 == 0},
		}))
	}
	seen := func(what string) { // by both: from then on nobody may be told less
		s.eventually(10*time.Second, what, func() bool {
			return instances[0].mileage("1") == km && instances[1].mileage("1") == km
		})
	}
	report()
	seen("the first report")
	for range 3 {
		report()
		seen("a report")
		s.must(s.redis.Kill())
		for _, i := range instances {
			if got := i.mileage("1"); got < km {
				t.Errorf("without Redis an instance says %v, and said %v before", got, km)
			}
		}
		s.must(s.redis.Restart())
		for _, i := range instances {
			if got := i.mileage("1"); got < km {
				t.Errorf("beside an empty Redis an instance says %v, and said %v before", got, km)
			}
		}
		report()
		seen("a report after the restart")
	}
}
