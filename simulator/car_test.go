package simulator

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

func newID() telematics.CommandID { return uuid.New() }

func TestCar_PublishesPresenceAndReportWhenItConnects(t *testing.T) {
	onTheRoad(t, Config{Password: "secret"}, func(r *road) {
		link := r.radio.link()
		if link.Unit != aUnit || link.Password != "secret" || !r.car.Connected() {
			t.Fatalf("login %+v, connected %t; want it connected with its password", link.Login, r.car.Connected())
		}
		online := link.presences(t)
		if len(online) != 1 || online[0].Status != telematics.Online || len(online[0].Actions) != len(CarActions) ||
			online[0].Firmware == "" {
			t.Fatalf("presences %+v, want one online with actions and firmware", online)
		}
		will, err := v1.DecodePresence(link.Will, time.Now())
		// [PRE-1]
		if err != nil || will.Status != telematics.Offline || will.Session != online[0].Session || !will.At.IsZero() {
			t.Errorf("last will %s of the session %s: %v; want offline without a time", link.Will, online[0].Session, err)
		}
		reports := link.reports(t)
		if len(reports) != 1 || reports[0].Values[telematics.MileageKm] == nil || reports[0].Values[telematics.RSRP] == nil {
			t.Errorf("reports %+v, want one with mileage and signal", reports)
		}
	})
}

func TestCar_SendsFullReportsAtItsInterval(t *testing.T) {
	onTheRoad(t, Config{Interval: 10 * time.Second}, func(r *road) {
		r.wait(time.Minute)
		if n := len(r.radio.link().reports(t)); n < 6 || n > 8 {
			t.Errorf("%d reports in a minute, want 6 to 8", n)
		}
	})
}

func TestCar_AnnouncesStandbyAndDisconnectsWhenItStops(t *testing.T) {
	onTheRoad(t, Config{}, func(r *road) {
		link := r.radio.link()
		r.stop()
		said := link.presences(t)
		if last := said[len(said)-1]; last.Status != telematics.Standby || last.Session != said[0].Session {
			t.Errorf("presences %+v, want standby of the same session at the end", said)
		}
		if !link.closed || r.car.Connected() {
			t.Error("the car sent no DISCONNECT, or is still connected")
		}
		r.car.Change(func(*Body) { t.Error("a stopped car was changed") })
	})
}

func TestCar_CommandIsAnsweredReportedAndRecorded(t *testing.T) {
	onTheRoad(t, Config{}, func(r *road) {
		c := r.send(telematics.Unlock, 10*time.Second)
		r.wait(100 * time.Millisecond)
		answers := r.radio.link().answers(t)
		if len(answers) != 2 {
			t.Fatalf("answers %+v, want two", answers)
		}
		says(t, answers[0], telematics.Received, "", "")
		says(t, answers[1], telematics.Succeeded, "", "")
		reports := r.radio.link().reports(t)
		partial := reports[len(reports)-1]
		if len(partial.Values) != 1 || partial.Values[telematics.IsLocked] != false {
			t.Errorf("the partial report is %+v, want is_locked alone", partial)
		}
		r.wait(30 * time.Second)
		reports = r.radio.link().reports(t)
		// [TEL-3]
		if a := reports[len(reports)-1].Answers; len(a) != 1 || a[0].Command != c.Command {
			t.Errorf("the report repeats the answers %+v, want that of the command", a)
		}
		var kinds []Kind
		for _, e := range r.recorder.Of(c.Command) {
			kinds = append(kinds, e.Kind)
			if e.Unit != aUnit || e.Action != c.Action || e.Lane != c.Lane || e.Seq != c.Seq || e.True.IsZero() {
				t.Errorf("recorded event %+v does not match the command", e)
			}
		}
		want := []Kind{CommandReceived, CommandAnswered, CommandStarted, CommandEnded, CommandAnswered}
		if len(kinds) != len(want) {
			t.Fatalf("recorded %v, want %v", kinds, want)
		}
		for i := range want {
			if kinds[i] != want[i] {
				t.Errorf("recorded %v, want %v", kinds, want)
			}
		}
	})
}

func TestCar_ReconnectsWithANewSession(t *testing.T) {
	onTheRoad(t, Config{}, func(r *road) {
		first := r.radio.link()
		first.lose()
		r.wait(2 * time.Second)
		second := r.radio.link()
		if second == first || !r.car.Connected() {
			t.Fatal("the car did not reconnect")
		}
		if second.presences(t)[0].Session == first.presences(t)[0].Session {
			t.Error("the new connection has the old session")
		}
	})
}

func TestCar_AnswerWithoutAConnectionIsSentOnTheNext(t *testing.T) {
	onTheRoad(t, Config{}, func(r *road) {
		first := r.radio.link()
		c := r.send(telematics.Unlock, 10*time.Second)
		r.wait(15 * time.Millisecond) // the command is being executed
		first.jam()
		r.wait(50 * time.Millisecond)
		close(first.lost)
		r.wait(2 * time.Second)
		answers := r.radio.link().answers(t)
		if len(answers) == 0 || answers[len(answers)-1].Command != c.Command || answers[len(answers)-1].State != telematics.Succeeded {
			t.Errorf("answers %+v on the next connection, want succeeded at the end", answers)
		}
	})
}

func TestCar_RetriesRefusedConnectionsWithBackoff(t *testing.T) {
	onTheRoad(t, Config{}, func(r *road) {
		r.radio.setRefuse(true)
		r.radio.link().lose()
		r.wait(2 * time.Hour)
		attempts := r.radio.attempts()
		if n := len(attempts); n < 150 || n > 600 {
			t.Errorf("%d attempts in two hours, want 150 to 600", n)
		}
		if gap := attempts[len(attempts)-1].Sub(attempts[len(attempts)-2]); gap < 10*time.Second || gap > time.Minute {
			t.Errorf("the last two attempts are %v apart, want 10s to 1m", gap)
		}
		r.radio.setRefuse(false)
		r.wait(time.Minute)
		if !r.car.Connected() {
			t.Error("not connected although the network is available again")
		}
	})
}

func TestCar_UnreadableMemoryStopsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("worn out")
		err := NewCar(Config{Memory: unreadable{broken}, Radio: &fakeRadio{}}).Run(t.Context())
		if !errors.Is(err, broken) {
			t.Errorf("Run = %v, want the error of the memory", err)
		}
	})
}

type unreadable struct{ error }

func (u unreadable) Load() (Log, error) { return Log{}, u.error }
func (unreadable) Save(Log) error       { return nil }

func TestCar_ArmedImmobilizerEngagesAtSwitchOffAndIsReported(t *testing.T) {
	onTheRoad(t, Config{}, func(r *road) {
		r.car.Change(func(b *Body) { b.Ignition = true })
		r.send(telematics.DisableDriving, 10*time.Second)
		r.wait(100 * time.Millisecond)
		answers := r.radio.link().answers(t)
		says(t, answers[len(answers)-1], telematics.Succeeded, "", "armed")
		r.car.Change(func(b *Body) { b.Ignition = false })
		r.wait(100 * time.Millisecond)
		reports := r.radio.link().reports(t)
		last := reports[len(reports)-1].Values
		if last[telematics.Ignition] != "off" || last[telematics.OEMData].(map[string]any)["immobilizer"] != "engaged" {
			t.Errorf("reported %v, want the ignition off and the immobilizer engaged", last)
		}
	})
}

func TestCar_CanBeDisconnectedAndReconnected(t *testing.T) {
	onTheRoad(t, Config{}, func(r *road) {
		r.car.SetFaults(Faults{Offline: true})
		if first := r.radio.link(); !first.cut || r.car.Connected() {
			t.Error("the car is still connected")
		}
		r.wait(time.Hour)
		assert.Equal(t, len(r.radio.attempts()), 1, "attempts without a network")
		r.car.SetFaults(Faults{})
		r.wait(time.Second)
		if !r.car.Connected() {
			t.Error("the car did not reconnect")
		}
	})
}

func TestCar_WrongClockDatesReports(t *testing.T) {
	onTheRoad(t, Config{}, func(r *road) {
		r.car.SetClock(Clock{Skew: 4 * time.Minute})
		r.car.Change(func(b *Body) { b.KeyIn = true })
		r.wait(100 * time.Millisecond)
		reports := r.radio.link().reports(t)
		if ahead := time.Until(reports[len(reports)-1].At); ahead < 3*time.Minute {
			t.Errorf("the report is dated %v ahead, want at least 3m", ahead)
		}
	})
}
