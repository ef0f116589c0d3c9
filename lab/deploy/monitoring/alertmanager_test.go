package monitoring_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"motorpool/alerts"
	"motorpool/alerts/alertmanager"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

const alertmanagerConfig = `
route: {receiver: desk, group_by: [service, agency], group_wait: 50ms}
receivers: [{name: desk}]
`

// At a real Alertmanager, open alerts of two vehicles arrive in one group, a silence of one keeps
// it from the receivers, and the other one ends when it is cleared.
func TestAlertmanager_GroupsSilencesAndEndsAlertsOfVehicles(t *testing.T) {
	devstack.NeedServer(t, devstack.AlertmanagerServer)
	a := startAlertmanager(t)
	open := &openAlerts{}
	for _, v := range []alerts.Alert{{Vehicle: 41, Plate: "M-IM 41"}, {Vehicle: 42, Plate: "M-IM 42"}} {
		v.Rule, v.Severity, v.Agency, v.Opened = alerts.LeftOpen, alerts.Warning, 1, time.Now().Add(-time.Minute)
		open.list = append(open.list, v)
	}
	a.send(open)
	a.eventually("one group has both", func() bool {
		var groups []struct{ Alerts []gettableAlert }
		a.get("/api/v2/alerts/groups", &groups)
		return len(groups) == 1 && len(groups[0].Alerts) == 2
	})
	a.silence("plate", "M-IM 41")
	a.eventually("one is silenced, and the other is active", func() bool {
		return slices.Equal(a.states(), []string{"M-IM 41 suppressed", "M-IM 42 active"})
	})
	open.clear("M-IM 42")
	a.eventually("the cleared one has ended", func() bool { return slices.Equal(a.states(), []string{"M-IM 41 suppressed"}) })
}

// openAlerts are the alerts that are open at an installation.
type openAlerts struct {
	mu   sync.Mutex
	list []alerts.Alert
}

func (o *openAlerts) read(context.Context) ([]alerts.Alert, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.list), nil
}

func (o *openAlerts) clear(plate string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.list = slices.DeleteFunc(o.list, func(a alerts.Alert) bool { return a.Plate == plate })
}

// gettableAlert is an alert as the API v2 returns it.
type gettableAlert struct {
	Labels map[string]string
	Status struct{ State string }
}

type alertmanagerServer struct {
	*testing.T
	*devstack.Monitor
}

func startAlertmanager(t *testing.T) alertmanagerServer {
	dir := t.TempDir()
	file := filepath.Join(dir, "alertmanager.yml")
	require.NoError(t, os.WriteFile(file, []byte(alertmanagerConfig), 0o600))
	server, err := devstack.StartAlertmanager(dir, file)
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return alertmanagerServer{t, server}
}

// send sends alerts until the test ends, as an instance does, and more often.
func (a alertmanagerServer) send(open *openAlerts) {
	urls, err := alertmanager.ParseURLs(a.URL())
	require.NoError(a, err)
	sender := alertmanager.New(alertmanager.Config{URLs: urls, Open: open.read, Look: 50 * time.Millisecond, Repeat: time.Second})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = sender.Run(ctx) })
	a.Cleanup(func() { stop(); running.Wait() })
}

// states returns the plate and the state of each alert that has not ended, by plate.
func (a alertmanagerServer) states() []string {
	var list []gettableAlert
	a.get("/api/v2/alerts", &list)
	states := make([]string, len(list))
	for i, one := range list {
		states[i] = one.Labels["plate"] + " " + one.Status.State
	}
	slices.Sort(states)
	return states
}

func (a alertmanagerServer) silence(label, value string) {
	body, err := json.Marshal(map[string]any{
		"matchers": []any{map[string]any{"name": label, "value": value, "isRegex": false}},
		"startsAt": time.Now(), "endsAt": time.Now().Add(time.Hour), "createdBy": "anna", "comment": "is being repaired",
	})
	require.NoError(a, err)
	response, err := http.Post(a.URL()+"/api/v2/silences", "application/json", bytes.NewReader(body))
	a.read(response, err, nil)
}

func (a alertmanagerServer) get(path string, into any) {
	response, err := http.Get(a.URL() + path)
	a.read(response, err, into)
}

func (a alertmanagerServer) read(response *http.Response, err error, into any) {
	a.Helper()
	require.NoError(a, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("answered %s", response.Status)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		a.Fatalf("%v: %s", err, text)
	}
}

func (a alertmanagerServer) eventually(what string, holds func() bool) {
	a.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			require.Late(a, "not within a minute: %s; the alerts are %v", what, a.states())
		}
	}
}
