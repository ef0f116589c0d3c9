package service_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// listedAlert has fields of an alert that the API shows.
type listedAlert struct {
	ID             string
	Rule           string
	Severity       string
	VehicleID      int64  `json:"vehicle_id"`
	AcknowledgedBy string `json:"acknowledged_by"`
	Facts          map[string]any
}

func (i *instance) openAlerts() (found []listedAlert) {
	i.Helper()
	i.get("/api/v1/admin/alerts?state=open", &found)
	slices.Reverse(found)
	return found
}

// awaitAlerts waits until these alerts are open, as "rule vehicle".
func (i *instance) awaitAlerts(want ...string) (found []listedAlert) {
	i.Helper()
	var got []string
	defer func() {
		if i.Failed() {
			i.Logf("open are %v", got)
		}
	}()
	i.eventually(20*time.Second, fmt.Sprintf("open alerts are %v", want), func() bool {
		found, got = i.openAlerts(), nil
		for _, a := range found {
			got = append(got, fmt.Sprintf("%s %d", a.Rule, a.VehicleID))
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
	return found
}

// What cars report opens alerts, which a restart of every instance leaves open, and clears them. An
// Alertmanager gets them.
func TestAlerts_StayOverARestartOfEveryInstance(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.AlertmanagerServer)
	s := embeddedStack(t, 4)
	alertmanager, err := devstack.StartAlertmanager(s.dir, deployed+"prometheus/alertmanager.yml")
	s.must(err)
	t.Cleanup(func() { s.must(alertmanager.Close()) })
	sends := func(c *app.Config) { c.AlertmanagerURL = app.Secret(alertmanager.URL()) }
	notifies := func(want ...string) {
		t.Helper()
		s.eventually(20*time.Second, fmt.Sprintf("Alertmanager has %v", want), func() bool {
			var got []string
			var list []struct{ Labels map[string]string }
			s.fetchJSON(alertmanager.URL()+"/api/v2/alerts", &list)
			for _, a := range list {
				got = append(got, a.Labels["alertname"]+" "+a.Labels["vehicle"])
			}
			slices.Sort(got)
			return slices.Equal(got, want)
		})
	}
	i := s.serve(sends)
	for agency, more := range []string{1: `,{"rule":"left_open","for_s":0,"levels":[{"severity":"critical"}]}`, 2: ``} {
		if agency == 0 {
			continue
		}
		// Simulated cars have trouble codes and lamps.
		if r := i.send(http.MethodPut, fmt.Sprintf("/api/v1/admin/agencies/%d/alert-rules", agency),
			`{"rules":[{"rule":"lamp","enabled":false},{"rule":"trouble_code","enabled":false}`+more+`]}`); r.status != http.StatusOK {
			t.Fatalf("rules of agency %d: %d %+v", agency, r.status, r.Error)
		}
	}
	fleet := s.drive(nil, healthy)
	car := func(n int) *simulator.Car { return fleet.Car(telematics.Unit(fmt.Sprintf("car-%d", n))) }
	unlocked := func(b *simulator.Body) { b.Locked, b.Opened = false, []telematics.Field{telematics.DoorTrunk} }
	car(1).Change(func(b *simulator.Body) { b.ServiceDueKm = -10 })
	car(2).Change(unlocked) // of agency 2, where that opens after five minutes
	car(3).Change(unlocked)
	i.awaitAlerts("left_open 3", "service_due 1")
	// It is towed: that it was parked was noted when the alerts of the others opened.
	car(4).Change(func(b *simulator.Body) { b.Latitude += 0.003 })
	opened := i.awaitAlerts("left_open 3", "moved_without_booking 4", "service_due 1")
	i.eventually(10*time.Second, "open alerts are counted", func() bool {
		return i.metric(`motorpool_alerts_open{rule="left_open", severity="critical"}`) == 1
	})

	notifies("left_open 3", "moved_without_booking 4", "service_due 1")

	i.stop()
	i = s.serve(sends)
	swept := func() bool { return i.metric("motorpool_alerts_swept_timestamp_seconds") > 0 }
	i.eventually(30*time.Second, "the alerts are evaluated again", swept)
	if again := i.openAlerts(); !slices.EqualFunc(again, opened, func(a, b listedAlert) bool { return a.ID == b.ID }) {
		t.Errorf("open after the restart: %+v, want %+v", again, opened)
	}
	r := i.send(http.MethodPost, "/api/v1/admin/alerts/"+opened[0].ID+"/acknowledge", `{"note":"on its way"}`)
	if r.status != http.StatusOK {
		t.Errorf("acknowledge: %d %+v", r.status, r.Error)
	}
	for n := range 4 {
		car(n + 1).Change(func(b *simulator.Body) { b.Locked, b.Opened, b.ServiceDueKm = true, nil, 9000 })
	}
	car(4).Change(func(b *simulator.Body) { b.Latitude -= 0.003 })
	i.awaitAlerts()
	notifies()
	var cleared []listedAlert
	i.get("/api/v1/admin/alerts?state=cleared", &cleared)
	if len(cleared) != 3 || cleared[2].AcknowledgedBy != "admin-7" {
		t.Errorf("cleared: %+v", cleared)
	}
}
