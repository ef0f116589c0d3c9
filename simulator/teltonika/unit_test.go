package teltonika

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/google/uuid"
	"go.uber.org/goleak"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
	codec "motorpool/telematics/teltonika"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience = time.Minute
	imei     = "352093081452251"
)

var installation = telematics.Installation{
	"lock": "output 1 pulse 1s", "unlock": "output 2 pulse 1s", "disable-driving": "output 3 on", "enable-driving": "output 3 off",
	"horn": "output 4", "lights": "output 4", "lock-signal": "can",
}

// world is a unit at a real Mosquitto with the production access rules, and a client with the
// rights of the service, which decodes with its codec.
type world struct {
	t        *testing.T
	ctx      context.Context
	client   paho.Client
	unit     *Unit
	recorder *simulator.Recorder

	mu      sync.Mutex
	reports []telematics.Report // in order of arrival
	answers []telematics.Answer
}

func begin(t *testing.T, config Config) *world {
	t.Helper()
	t.Parallel()
	devstack.NeedServer(t, devstack.MosquittoServer)
	broker, err := devstack.StartMosquitto(
		devstack.MosquittoConfig{Dir: t.TempDir(), Units: map[string]string{imei: "password"}, ServicePassword: "secret"},
	)
	require.NoError(t, err)
	t.Cleanup(func() { _ = broker.Close() })
	w := &world{t: t, recorder: &simulator.Recorder{}}
	w.client = paho.NewClient(paho.NewClientOptions().AddBroker(broker.ServiceURL()).SetClientID("service").
		SetUsername(mosquitto.ServiceUser).SetPassword("secret"))
	hear := func(_ paho.Client, m paho.Message) { w.hear(m) }
	for _, do := range []func() paho.Token{
		w.client.Connect, func() paho.Token { return w.client.Subscribe((codec.Dialect{}).Filters().Answers, 1, hear) },
	} {
		if token := do(); !token.WaitTimeout(patience) || token.Error() != nil {
			t.Fatal(token.Error())
		}
	}
	t.Cleanup(func() { w.client.Disconnect(100) })

	config.Unit, config.Password, config.Broker, config.Recorder = imei, "password", broker.UnitsURL(), w.recorder
	config.Body = simulator.Van(simulator.Point{Latitude: 48.1271, Longitude: 11.6050})
	config.Body.Locked = false
	config.Reconnect = 100 * time.Millisecond
	config.Speed = max(config.Speed, 1)
	w.unit = New(config)
	ctx, stop := context.WithCancel(context.Background())
	w.ctx = ctx
	ended := make(chan error, 1)
	go func() { ended <- w.unit.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-ended)
	})
	w.await("the first record", func() bool { return len(w.reports) > 0 })
	return w
}

func (w *world) hear(m paho.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	unit, _, err := (codec.Dialect{}).ParseTopic(m.Topic())
	message := telematics.Message{Unit: unit, Payload: m.Payload(), Retained: m.Retained()}
	report, dropped, reportErr := (codec.Dialect{}).DecodeReport(message, time.Now())
	answer, _, answerErr := (codec.Dialect{}).DecodeAnswer(message, time.Now())
	switch {
	case err != nil || m.Retained() || len(dropped) > 0:
		w.t.Errorf("message on %s: %s: error %v, dropped %v", m.Topic(), m.Payload(), err, dropped)
	case reportErr == nil && errors.Is(answerErr, telematics.ErrOtherKind):
		w.reports = append(w.reports, report)
	case answerErr == nil && errors.Is(reportErr, telematics.ErrOtherKind):
		w.answers = append(w.answers, answer)
	default:
		w.t.Errorf("the message %s is neither a report (%v) nor an answer (%v)", m.Payload(), reportErr, answerErr)
	}
}

func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		w.mu.Lock()
		ok := holds()
		w.mu.Unlock()
		if ok {
			return
		}
	}
	require.Late(w.t, "%s did not happen; reports %v, answers %v", what, w.reports, w.answers)
}

func (w *world) send(a telematics.Action) {
	w.t.Helper()
	now := time.Now()
	c := telematics.Command{
		ID: uuid.New(), Unit: imei, Action: a, Installation: installation, Requested: now,
		Deadline: now.Add(10 * time.Second),
	}
	if a == telematics.AttentionSignal {
		c.Attention = &telematics.Attention{Signal: telematics.Both, Duration: time.Second}
	}
	out, err := (codec.Dialect{}).Encode(&c, nil)
	require.NoError(w.t, err)
	w.publish(out.Topic, out.QoS, out.Payload)
}

func (w *world) publish(topic string, qos byte, payload []byte) {
	w.t.Helper()
	if token := w.client.Publish(topic, qos, false, payload); !token.WaitTimeout(patience) || token.Error() != nil {
		w.t.Fatal(token.Error())
	}
}

// started counts how often the vehicle started an action.
func (w *world) started(a telematics.Action) (n int) {
	for _, e := range w.recorder.Events() {
		if e.Kind == simulator.CommandStarted && e.Action == a {
			n++
		}
	}
	return n
}

func (w *world) awaitAnswers(n int) telematics.Answer {
	w.t.Helper()
	w.await("an answer", func() bool { return len(w.answers) >= n })
	return w.answers[n-1]
}

// locked returns the state of the locks in the latest record.
func (w *world) locked() any { return w.reports[len(w.reports)-1].Values[telematics.IsLocked] }

func TestUnit_ExecutesAnswersAndReportsEveryCommand(t *testing.T) {
	w := begin(t, Config{})
	for i, a := range []telematics.Action{
		telematics.Lock, telematics.Unlock, telematics.DisableDriving, telematics.EnableDriving, telematics.AttentionSignal,
		telematics.LockAndDisableDriving, telematics.UnlockAndEnableDriving,
	} {
		w.send(a)
		if answer := w.awaitAnswers(i + 1); answer.State != telematics.Succeeded || answer.Command != telematics.NoCommand {
			t.Errorf("%s: answer %+v, want succeeded without a command", a, answer)
		}
		switch a {
		case telematics.Lock, telematics.LockAndDisableDriving:
			w.await("a record of the locks", func() bool { return w.locked() == true })
		case telematics.Unlock, telematics.UnlockAndEnableDriving:
			w.await("a record of the locks", func() bool { return w.locked() == false })
		}
		if body := w.unit.Body(w.ctx); (body.Immobilizer == simulator.Engaged) != a.Immobilizes() {
			t.Errorf("after %s the immobilizer is %s", a, body.Immobilizer)
		}
	}
	if w.started(telematics.Lock) != 2 || w.started(telematics.AttentionSignal) != 1 {
		t.Errorf("the recorder has %v, want two locks and one signal", w.recorder.Events())
	}
}

func TestUnit_ExecutesEveryCopyOfACommand(t *testing.T) {
	w := begin(t, Config{})
	for range 3 {
		w.send(telematics.Lock)
	}
	w.awaitAnswers(3)
	assert.Equal(t, w.started(telematics.Lock), 3, "executions")
}

// Both texts of the firmware mean that the command is executed, and belong to it.
func TestUnit_OutputThatIsAsWantedIsAnswered(t *testing.T) {
	for again, want := range map[bool]string{false: "DOUT1:ON Timeout:1s DOUT2:IGNORED DOUT3:Already " +
		"set to 1", true: "DOUT1:ON Timeout:1s DOUT2:IGNORED DOUT3:ON Timeout:INFINITY"} {
		t.Run(want, func(t *testing.T) {
			w := begin(t, Config{SwitchesAgain: again})
			w.send(telematics.DisableDriving)
			w.awaitAnswers(1)
			w.send(telematics.LockAndDisableDriving)
			a := w.awaitAnswers(2)
			state, can := (codec.Dialect{}).Recognise(
				installation, &telematics.Command{Unit: imei, Action: telematics.LockAndDisableDriving}, a,
			)
			if a.Detail != want || state != telematics.Succeeded || !can {
				t.Errorf("answer %+v is %s, %t; want %q, which settles the command as succeeded", a, state, can, want)
			}
			if body := w.unit.Body(w.ctx); body.Immobilizer != simulator.Engaged || w.started(telematics.DisableDriving) != 1 {
				t.Errorf("the immobilizer is %s, engaged %d times", body.Immobilizer, w.started(telematics.DisableDriving))
			}
		})
	}
}

func TestUnit_StuckLockIsAnsweredButNotReported(t *testing.T) {
	w := begin(t, Config{Faults: Faults{Stuck: true}})
	w.send(telematics.Lock)
	if a := w.awaitAnswers(1); a.State != telematics.Succeeded {
		t.Errorf("answer %+v, want succeeded", a)
	}
	w.unit.Do(w.ctx, func(b *simulator.Body, _ *Faults) { b.Ignition = true })
	w.await("a record", func() bool { return w.reports[len(w.reports)-1].Values[telematics.Ignition] == "on" })
	if w.locked() != false || w.unit.Body(w.ctx).Locked {
		t.Error("the stuck lock moved")
	}
}

func TestUnit_AnswersMayBeLostOrLateAndNameNoCommand(t *testing.T) {
	w := begin(t, Config{Faults: Faults{Mute: true}})
	w.send(telematics.Lock)
	w.await("the lock", func() bool { return w.locked() == true })
	w.unit.Do(w.ctx, func(_ *simulator.Body, f *Faults) { *f = Faults{Late: time.Second} })
	w.send(telematics.DisableDriving)
	w.await("its execution", func() bool { return w.started(telematics.DisableDriving) == 1 })
	w.mu.Lock()
	early := len(w.answers)
	w.mu.Unlock()
	if a := w.awaitAnswers(1); early != 0 || !strings.HasPrefix(a.Detail, "DOUT1:IGNORED DOUT2:IGNORED DOUT3:ON") {
		t.Errorf("%d answers came too early, then %+v", early, a)
	}
}

func TestUnit_RefusalIsAnswered(t *testing.T) {
	w := begin(t, Config{Faults: Faults{Disabled: true}})
	w.send(telematics.Lock)
	if a := w.awaitAnswers(1); a.State != telematics.Rejected || a.Reason != telematics.Unsupported {
		t.Errorf("answer %+v, want rejected as unsupported", a)
	}
	w.publish(codec.CommandTopic(imei), 1, []byte(`{"CMD":"SETDIGOUT 1"}`))
	if a := w.awaitAnswers(2); a.State != telematics.Rejected {
		t.Errorf("answer %+v, want rejected", a)
	}
	if w.unit.Body(w.ctx).Locked {
		t.Error("a refused command locked the vehicle")
	}
}

func TestUnit_KeepsRecordsWithoutANetwork(t *testing.T) {
	w := begin(t, Config{})
	w.unit.Do(w.ctx, func(_ *simulator.Body, f *Faults) { f.Offline = true })
	before := time.Now()
	w.unit.Do(w.ctx, func(b *simulator.Body, _ *Faults) { b.Ignition = true })
	w.unit.Do(w.ctx, func(b *simulator.Body, _ *Faults) { b.Locked = true })
	time.Sleep(200 * time.Millisecond)
	back := time.Now()
	of := func() (kept []telematics.Report) { // the time without a network
		for _, r := range w.reports {
			if r.Values[telematics.Ignition] == "on" {
				kept = append(kept, r)
			}
		}
		return kept
	}
	w.mu.Lock()
	if early := of(); len(early) > 0 {
		t.Errorf("%v arrived without a network", early)
	}
	w.mu.Unlock()
	w.unit.Do(w.ctx, func(_ *simulator.Body, f *Faults) { f.Offline = false })
	w.await("both records", func() bool { return len(of()) >= 2 })
	w.mu.Lock()
	kept := of()[:2]
	w.mu.Unlock()
	for i, r := range kept {
		if r.At.Before(before.Truncate(time.Second)) || r.At.After(back) || i > 0 && r.At.Before(kept[0].At) {
			t.Errorf("record %d is dated %v, want it between %v and %v and in order", i, r.At, before, back)
		}
	}
	if kept[0].Values[telematics.IsLocked] != false || kept[1].Values[telematics.IsLocked] != true {
		t.Errorf("the records are %v, want unlocked, then locked", kept)
	}
}

func TestUnit_MovingVehicleReportsOftenAParkedOneRarely(t *testing.T) {
	w := begin(t, Config{Speed: 60, Moving: 10 * time.Second, Stopped: time.Hour})
	w.unit.Do(w.ctx, func(b *simulator.Body, _ *Faults) { b.Ignition, b.SpeedKmh = true, 50 })
	w.await("ten records of the drive", func() bool { return len(w.reports) >= 10 })
	w.unit.Do(w.ctx, func(b *simulator.Body, _ *Faults) { b.SpeedKmh = 0 })
	w.await("the stop", func() bool { return w.reports[len(w.reports)-1].Values[telematics.SpeedKmh] == 0.0 })
	w.mu.Lock()
	stopped, first := len(w.reports), w.reports[0]
	last := w.reports[stopped-1]
	w.mu.Unlock()
	if first.Values[telematics.MileageKm].(float64) >= last.Values[telematics.MileageKm].(float64) {
		t.Errorf("the mileage did not increase from %v to %v", first, last)
	}
	time.Sleep(500 * time.Millisecond) // half a minute of the unit's time
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.reports) != stopped {
		t.Errorf("%d records of a parked vehicle in half a minute, want none", len(w.reports)-stopped)
	}
}

func TestUnit_RunsADay(t *testing.T) {
	w := begin(t, Config{Speed: 3000, Day: simulator.NewDay(6*time.Hour + 50*time.Minute)})
	before := w.unit.Body(w.ctx)
	saw := func(f telematics.Field, value any) func() bool {
		return func() bool {
			for _, r := range w.reports {
				if got, ok := r.Values[f]; ok && got == value {
					return true
				}
			}
			return false
		}
	}
	w.await("the drive", saw(telematics.Ignition, "on"))
	w.await("the garage without a network", func() bool { return !w.unit.Connected() })
	w.await("the connection after the garage", w.unit.Connected)
	after := w.unit.Body(w.ctx)
	if after.EnergyPercent >= before.EnergyPercent || after.MileageKm <= before.MileageKm || !after.Locked {
		t.Errorf(
			"after the drive %.1f %% and %.1f km, locked %t; before %.1f %% and %.1f km", after.EnergyPercent,
			after.MileageKm, after.Locked, before.EnergyPercent, before.MileageKm,
		)
	}
	w.await("the record of the key", saw(telematics.IsLocked, true))
}

func TestRadio_Faults(t *testing.T) {
	w := begin(t, Config{})
	set := func(f Faults) { w.unit.Do(w.ctx, func(_ *simulator.Body, faults *Faults) { *faults = f }) }
	set(Faults{Duplicate: 1})
	w.send(telematics.Lock)
	w.awaitAnswers(2)
	set(Faults{Drop: 1})
	w.send(telematics.DisableDriving)
	w.await("its loss", func() (is bool) { w.unit.Ask(w.ctx, func() { is = w.unit.dropped == 1 }); return is })
	const delay = 2 * time.Second // on a busy machine, too, the unit restarts within it
	set(Faults{Delay: delay})
	w.send(telematics.DisableDriving)
	w.await("its arrival", func() bool {
		events := w.recorder.Events()
		return events[len(events)-1].Kind == simulator.CommandReceived && events[len(events)-1].Seq == 2
	})
	heard := time.Now()
	w.unit.Restart(w.ctx)
	set(Faults{})
	w.await("a connection", w.unit.Connected)
	w.send(telematics.Unlock)
	w.awaitAnswers(3)
	// Until a delayed command would have been executed.
	time.Sleep(time.Until(heard.Add(delay + delay/4)))
	assert.Equal(t, w.started(telematics.DisableDriving), 0, "lost commands executed")
}
