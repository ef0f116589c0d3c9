package service_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// mileage returns the odometer of a vehicle that an instance shows; -1: none yet.
func (i *instance) mileage(vehicle string) float64 {
	i.Helper()
	var status struct {
		Telemetry struct {
			MileageKm *float64 `json:"mileage_km"`
		} `json:"telemetry"`
	}
	i.get("/api/v1/admin/vehicles/"+vehicle+"/status", &status).wants(200)
	if status.Telemetry.MileageKm == nil {
		return -1
	}
	return *status.Telemetry.MileageKm
}

func TestEmptied_SnapshotsComeBackFromPostgresWhereRedisRestartsEmpty(t *testing.T) {
	t.Parallel()
	s := realStack(t, 1)
	instances := []*instance{s.serve(), s.serve()}
	var km float64
	report := func() {
		km++
		s.whisper("car-1", v1.TelemetryChannel, v1.EncodeReport(telematics.Report{
			At: time.Now(), Values: map[telematics.Field]any{telematics.MileageKm: km, telematics.IsLocked: int(km)%2 == 0},
		}))
	}
	seen := func(what string) { // by both instances: from then on no read may return less
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
				t.Errorf("without Redis an instance returns %v, after it returned %v", got, km)
			}
		}
		s.must(s.redis.Restart())
		for _, i := range instances {
			if got := i.mileage("1"); got < km {
				t.Errorf("with an empty Redis an instance returns %v, after it returned %v", got, km)
			}
		}
		report()
		seen("a report after the restart")
	}
}

// sendToRedis sends a command to Redis directly.
func (s *stack) sendToRedis(command string) {
	s.Helper()
	address, err := url.Parse(s.redis.URL())
	s.must(err)
	connection, err := net.Dial("tcp", address.Host)
	s.must(err)
	defer connection.Close()
	_, err = fmt.Fprintf(connection, "%s\r\n", command)
	s.must(err)
	answer, err := bufio.NewReader(connection).ReadString('\n')
	s.must(err)
	if !strings.HasPrefix(answer, "+OK") {
		s.Fatalf("%s: %s", command, answer)
	}
}

func TestReadiness_RedisThatRefusesWritesIsNotReady(t *testing.T) {
	t.Parallel()
	s := realStack(t, 1)
	i := s.serve()
	for _, trouble := range []struct{ begin, end, says string }{
		{"CONFIG SET maxmemory 100000", "CONFIG SET maxmemory 0", "it is full: maxmemory is reached"},
		{"REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE", "it is read-only: a replica"},
	} {
		s.sendToRedis(trouble.begin)
		i.says(http.StatusServiceUnavailable, trouble.says)
		s.sendToRedis(trouble.end)
		s.eventually(20*time.Second, "ready again after "+trouble.end, func() bool { status, _ := i.readiness(); return status == 200 })
	}
}
