package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
	"go.uber.org/goleak"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/internal/settings"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/telematics"
	"motorpool/telematics/signing"
	v1 "motorpool/telematics/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var silent = slog.New(slog.DiscardHandler)

func parse(t *testing.T, args ...string) (options, error) {
	t.Helper()
	var o options
	var reader settings.Reader
	parser, err := kong.New(&o, reader.Options("MOTORPOOL_SIM")...)
	require.NoError(t, err)
	_, err = reader.Parse(parser, args)
	return o, err
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestSettings_AllErrorsAreReportedTogether(t *testing.T) {
	_, err := parse(t, "--keys=k", "--demo", "--cars=-1", "--drop=1.5", "--fail=NaN", "--skew=-1s", "--interval=0s")
	for _, flag := range []string{"--cars", "--demo", "--drop 1.5", "--fail NaN", "--skew", "--interval"} {
		if err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is not named in: %v", flag, err)
		}
	}
	for _, args := range [][]string{
		{"--keys=k"}, {"--cars=1", "--secret=s"}, {"--keys=k", "--cars=1"}, {"--keys=k", "--cars=1", "--secret=s", "--latency=5g"},
	} {
		if _, err := parse(t, args...); !errors.Is(err, settings.ErrUsage) || settings.ExitCode(err) != 2 {
			t.Errorf("%v: %v, want a wrong command line, exit code 2", args, err)
		}
	}
}

func TestCars_NumberedOnesHaveDerivedPasswordsAndMemories(t *testing.T) {
	dir := t.TempDir()
	o, err := parse(t, "--keys=k", "--cars=3", "--secret=s", "--prefix=van-", "--memory="+dir, "--fail=1", "--skew=2s")
	require.NoError(t, err)
	cars, err := o.cars()
	if err != nil || len(cars) != 3 {
		t.Fatalf("%d cars: %v", len(cars), err)
	}
	last := cars[2]
	if last.Unit != "van-3" || last.Password != mosquitto.UnitPassword("s", "van-3") || last.Profile.Faults.Fail.Chance != 1 {
		t.Errorf("car %+v, want van-3 with its derived password and the faults of the flags", last)
	}
	if last.Memory != (simulator.File{Path: filepath.Join(dir, "van-3.json")}) || last.Profile.Clock.Skew.Abs() > 2*time.Second {
		t.Errorf("the memory is %v, the clock %+v", last.Memory, last.Profile.Clock)
	}
	o.Prefix = "van 1"
	if _, err := o.cars(); err == nil {
		t.Error("a serial with a space was accepted")
	}
}

func TestCars_UnitsFileAndDemoProfiles(t *testing.T) {
	units := write(
		t, "units.json",
		`{"10":{"unit":"u10","password":"p"},"8":{"unit":"u8","password":"q"},"11":{"unit":"u11","password":"r"}}`,
	)
	o, err := parse(t, "--keys=k", "--units="+units, "--demo", "--silent=1")
	require.NoError(t, err)
	cars, err := o.cars()
	if err != nil || len(cars) != 3 {
		t.Fatalf("%d cars: %v", len(cars), err)
	}
	if cars[0].Unit != "u8" || cars[0].Password != "q" || cars[0].Profile.Name != "answers too late" ||
		cars[1].Profile.Name != "tries, and fails" {
		t.Errorf("cars %+v, want the demo profiles of the units", cars)
	}
	if cars[1].Profile.Faults.Silent || !cars[2].Profile.Faults.Silent {
		t.Error("want the faults of the flags only at cars without faults")
	}
	for _, text := range []string{"[]", `{"x":{}}`, `{"1":{"unit":"a b"}}`} {
		o.Units = write(t, "units.json", text)
		if _, err := o.cars(); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

func keyring(t *testing.T) (signing.Key, string) {
	t.Helper()
	key, err := signing.NewKey()
	require.NoError(t, err)
	text, err := signing.EncodeKeyring(key.Keyring())
	require.NoError(t, err)
	return key, string(text)
}

func TestKeyring_FromAFileOrAURLThatIsAvailableLater(t *testing.T) {
	key, text := keyring(t)
	ring, err := loadKeyring(t.Context(), newKeys(write(t, "keyring.jwks", text), silent))
	if err != nil || ring[key.ID] == nil {
		t.Fatalf("file: %v", err)
	}
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	ring, err = loadKeyring(t.Context(), newKeys(server.URL, silent))
	if err != nil || ring[key.ID] == nil || asked != 2 {
		t.Errorf("URL: %v after %d requests", err, asked)
	}
	if _, err := loadKeyring(t.Context(), newKeys("none.jwks", silent)); err == nil {
		t.Error("a missing file of keys returned no error")
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := loadKeyring(stopped, newKeys(server.URL, silent)); err != nil {
		t.Errorf("Ctrl-C while waiting: %v", err)
	}
}

// allow is a broker hook that accepts clients with the right password.
type allow struct {
	mochi.HookBase
	secret string
}

func (*allow) ID() string { return "allow" }
func (*allow) Provides(h byte) bool {
	return h == mochi.OnConnectAuthenticate || h == mochi.OnACLCheck
}
func (a *allow) OnConnectAuthenticate(_ *mochi.Client, p packets.Packet) bool {
	return string(p.Connect.Password) == mosquitto.UnitPassword(a.secret, string(p.Connect.Username))
}
func (*allow) OnACLCheck(*mochi.Client, string, bool) bool { return true }

func TestRun_FleetExecutesRecordsAndStops(t *testing.T) {
	key, text := keyring(t)
	server := mochi.New(&mochi.Options{InlineClient: true, Logger: silent})
	listener := listeners.NewTCP(listeners.Config{ID: "units", Address: "127.0.0.1:0"})
	for _, err := range []error{server.AddHook(&allow{secret: "s"}, nil), server.AddListener(listener), server.Serve()} {
		require.NoError(t, err)
	}
	defer func() {
		// mochi takes a read lock twice when it closes: a client that disconnects in between blocks
		// it permanently.
		for deadline := time.Now().Add(20 * time.Second); server.Clients.Len() > 1 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		assert.NoError(t, server.Close())
	}()
	done := make(chan telematics.Answer, 10)
	ready := make(chan struct{}, 10)
	hear := func(_ *mochi.Client, _ packets.Subscription, p packets.Packet) {
		if a, _, err := v1.DecodeAnswer(p.Payload, time.Now()); err == nil && a.State.IsFinal() {
			done <- a
		} else if err != nil {
			ready <- struct{}{}
		}
	}
	for i, c := range []v1.Channel{v1.AckChannel, v1.PresenceChannel} {
		require.NoError(t, server.Subscribe(c.Topic("sim-2"), i+1, hear))
	}
	record := filepath.Join(t.TempDir(), "flight.jsonl")
	o, err := parse(
		t, "--broker=tcp://"+listener.Address(), "--keys="+write(t, "k.jwks", text), "--cars=2", "--secret=s",
		"--record="+record,
	)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, o, silent) }()
	await(t, ctx, ready)
	now := time.Now().Truncate(time.Second)
	command := telematics.Claims{
		Command: [16]byte{1}, Unit: "sim-2", Action: telematics.Unlock, Lane: telematics.AccessLane, Seq: 1,
		IssuedAt: now, Expires: now.Add(telematics.MaxBudget),
	}
	order := func(key signing.Key) telematics.Answer {
		message, err := key.Sign(command)
		require.NoError(t, err)
		require.NoError(t, server.Publish(v1.CommandChannel.Topic("sim-2"), message, false, 1))
		return await(t, ctx, done)
	}
	if a := order(key); a.State != telematics.Succeeded {
		t.Errorf("answer %+v, want succeeded", a)
	}
	next, text := keyring(t)
	require.NoError(t, os.WriteFile(o.Keys, []byte(text), 0o600))
	command.Seq = 2
	for command.Command[0] = 2; ; command.Command[0]++ {
		if a := order(next); a.State == telematics.Succeeded {
			break
		} else if a.Reason != telematics.BadSignature {
			t.Fatalf("answer %+v, want bad_signature until the cars have the new key", a)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal("the cars did not get the new key")
		}
	}
	cancel()
	require.NoError(t, <-ended)
	file, err := os.Open(record)
	require.NoError(t, err)
	defer file.Close()
	kinds := map[simulator.Kind]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var e simulator.Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Unit != "sim-2" {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		kinds[e.Kind]++
	}
	if kinds[simulator.CommandReceived] != 2 || kinds[simulator.CommandStarted] != 2 {
		t.Errorf("the recorder has %v, want 2 received and 2 started commands", kinds)
	}
}

func await[T any](t *testing.T, ctx context.Context, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-ctx.Done():
		t.Fatal("no value arrived before the context ended")
		panic("unreachable")
	}
}
