package service_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/telematics"
)

func commandOf(t *testing.T, r reply) command {
	t.Helper()
	var c command
	require.NoError(t, json.Unmarshal(r.Data, &c), "%d %s", r.status, r.Data)
	return c
}

func TestBulk_CommandsVehiclesConcurrently(t *testing.T) {
	t.Parallel()
	const fleet = 12
	s := startStack(t, fleet)
	i := s.serve()
	s.drive(nil, slow(300*time.Millisecond))
	ids := []string{"4711"}
	for n := range fleet {
		ids = append(ids, fmt.Sprint(n+1))
	}
	r := i.send(http.MethodPost, "/api/v1/admin/commands", `{"action":"lock","vehicle_ids":[`+strings.Join(ids, ",")+`]}`)
	if r.status != http.StatusAccepted {
		s.Fatalf("the bulk command: %d %+v, want 202", r.status, r.Error)
	}
	var bulk struct {
		Summary struct {
			Total, Open, Executed int
			NotExecuted           int `json:"not_executed"`
		}
		Items []struct {
			VehicleID int      `json:"vehicle_id"`
			Command   *command `json:"command"`
			Error     *struct{ Code string }
		}
	}
	s.must(json.Unmarshal(r.Data, &bulk))
	if bulk.Summary.Total != fleet+1 || bulk.Summary.NotExecuted != 1 || bulk.Items[0].Error == nil ||
		bulk.Items[0].Error.Code != "vehicle_not_found" ||
		bulk.Items[1].Command == nil {
		s.Errorf("the summary is %+v, want one vehicle not found", bulk.Summary)
	}
	s.eventually(telematics.MaxBudget, "all commands are settled", func() bool {
		return i.get(r.header.Get("Location"), &bulk).status == 200 && bulk.Summary.Open == 0
	})
	if bulk.Summary.Executed != fleet {
		s.Errorf("the summary is %+v, want all vehicles to have executed it: %+v", bulk.Summary, bulk.Items)
	}
}
