package broker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// The truck's unit speaks flag, the dialect in which answers name no command.
const (
	truckID = telematics.VehicleID(44)
	truck   = telematics.Unit("truck-44")
)

func (w *world) addTruck(installed telematics.Installation) {
	w.Put(telematics.Twin{
		Vehicle: telematics.Vehicle{
			ID: truckID, AgencyID: 1, Unit: truck, Protocol: "flag", Installation: installed,
			Status: telematics.Available, Actions: telematics.ControlActions,
		},
		Contact: telematics.Contact{LastSeen: time.Now()}, BestEffortUnlock: true,
	})
}

// truckSays delivers a message of the truck to an instance as a report and as an answer, since both
// subscriptions match its topic.
func (w *world) truckSays(instance int, payload string) {
	m := telematics.Message{Dialect: flag{}, Unit: truck, Subject: "data", Payload: []byte(payload)}
	w.brokers[instance].Report(m)
	w.brokers[instance].Answer(m)
}

// truckAnswers makes the truck answer each command through an instance after a delay.
func (w *world) truckAnswers(instance int, after time.Duration, payload string) {
	w.mqtt.car = func(p publication) {
		time.Sleep(after)
		w.truckSays(instance, payload)
	}
}

func (w *world) sendToTruck(instance int, action telematics.Action) (telematics.Command, *telematics.Error) {
	order := w.order(action)
	order.Vehicle = truckID
	if action == telematics.AttentionSignal {
		order.Attention = &telematics.Attention{Signal: telematics.Horn, Duration: telematics.DefaultPulse}
	}
	return w.sendVia(instance, order)
}

func (w *world) count(name string) (sum int64) {
	for _, b := range w.brokers {
		sum += metric(w.T, b, name)
	}
	return sum
}

func TestAssign_AnswerWithoutACommandSettlesTheOpenOne(t *testing.T) {
	for _, flushed := range []bool{false, true} {
		inWorld(t, 2, func(w *world) {
			w.addTruck(nil)
			w.truckAnswers(1, 3*time.Second, "answer done")
			if flushed {
				time.AfterFunc(time.Second, w.Pending.Flush)
			}
			c, err := w.sendToTruck(0, telematics.Lock)
			w.wantCode(err, "")
			if c.State != telematics.Succeeded || c.Assurance != (telematics.Promises{}) || len(w.mqtt.published()) != 1 {
				t.Errorf("%+v after %d publications, want succeeded after one", c, len(w.mqtt.published()))
			}
			w.truckAnswers(1, 3*time.Second, "answer no such door")
			c, err = w.sendToTruck(0, telematics.AttentionSignal)
			w.wantCode(err, telematics.CommandFailed)
			if c.Detail != "no such door" {
				t.Errorf("%+v, want the detail %q", c, "no such door")
			}
			if n := w.count(`motorpool_dropped_total{kind="report", reason="malformed"}`) +
				w.count(`motorpool_dropped_total{kind="answer", reason="malformed"}`); n != 0 {
				t.Errorf("%v messages of the other kind count as malformed, want none", n)
			}
		})
	}
}

// The clock of the instance with the answer may be behind that of the one with the order.
func TestAssign_AnswerByAClockThatIsBehind(t *testing.T) {
	inWorldOf(t, []wiring{clockAhead(900 * time.Millisecond), clockAhead(-900 * time.Millisecond)}, func(w *world) {
		w.addTruck(nil)
		w.truckAnswers(1, 1500*time.Millisecond, "answer done")
		c, err := w.sendToTruck(0, telematics.Lock)
		w.wantCode(err, "")
		if c.Latency() < 0 || w.Entries()[0].Latency < 0 {
			t.Errorf("latencies %v, and %v in the audit log, want none below zero", c.Latency(), w.Entries()[0].Latency)
		}
	})
}

// A command without an answer occupies its unit until no answer to it can arrive any more.
func TestAssign_LateAnswerDoesNotSettleALaterCommand(t *testing.T) {
	inWorld(t, 3, func(w *world) {
		w.addTruck(nil)
		lost, err := w.sendToTruck(0, telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		w.stops[0]() // the instance's memory is lost with it
		w.stops = w.stops[1:]
		w.Pending.Flush()
		over := lost.Deadline.Add(telematics.AnswerWithin)
		for _, instance := range []int{1, 2} {
			_, err := w.sendToTruck(instance, telematics.Unlock)
			w.wantCode(err, telematics.CommandInProgress)
			if err.Command != lost.ID || !err.Retryable || err.RetryAfter != time.Until(over) {
				t.Errorf("%+v, want a refusal that names the unanswered command, retry after %v", err, time.Until(over))
			}
		}
		time.Sleep(time.Until(over))
		w.truckAnswers(1, time.Second, "answer done")
		next, err := w.sendToTruck(1, telematics.Unlock)
		w.wantCode(err, "")
		if c := w.record(lost.ID); c.State != telematics.Unknown || next.State != telematics.Succeeded || len(w.mqtt.published()) != 2 {
			t.Errorf("first %+v\nthen %+v", c, next)
		}
	})
}

func TestAssign_LateAnswerSettlesNothingAndFreesTheUnit(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.addTruck(nil)
		w.truckAnswers(1, 40*time.Second, "answer done")
		lost, err := w.sendToTruck(0, telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		_, err = w.sendToTruck(0, telematics.Lock)
		w.wantCode(err, telematics.CommandInProgress)
		w.mqtt.cars.Wait()
		synctest.Wait()
		if c := w.record(lost.ID); c.State != telematics.Unknown || c.ReceivedAt.IsZero() ||
			w.count("motorpool_answers_to_none_total") != 1 {
			t.Errorf("%+v, %v answers to none; want unknown, received, one answer to none", c, w.count("motorpool_answers_to_none_total"))
		}
		w.truckSays(0, "answer done") // repeated, or without a command
		synctest.Wait()
		assert.Equal(t, w.count("motorpool_answers_to_none_total"), 2, "answers to none")
		w.truckAnswers(0, time.Second, "answer done unlock")
		_, err = w.sendToTruck(1, telematics.Unlock)
		w.wantCode(err, "")
	})
}

// A unit that got no acknowledgement of its answer sends it again when it has reconnected.
func TestAssign_RepeatedAnswerSettlesOneCommand(t *testing.T) {
	for _, c := range []struct {
		name   string
		first  string // the answer to a lock
		pause  time.Duration
		action telematics.Action
		says   []string // then; the first is the answer to the lock, repeated
		want   telematics.Code
	}{
		{
			"the same action, whose command is lost", "answer done lock", time.Minute, telematics.Lock, []string{"answer done lock"},
			telematics.CommandTimeout,
		},
		{"an answer without an action", "answer done", time.Minute, telematics.Unlock, []string{"answer done"}, telematics.CommandTimeout},
		{
			"a repeated refusal", "answer refused lock", time.Minute, telematics.Lock, []string{"answer refused lock"},
			telematics.CommandTimeout,
		},
		{"a command of another action", "answer done lock", time.Minute, telematics.Unlock, []string{
			"answer done lock", "answer done unlock",
		}, ""},
		{"a different answer to the same action", "answer refused lock", time.Minute, telematics.Lock, []string{"answer done lock"}, ""},
		{"another answer of the same meaning", "answer done lock", time.Minute, telematics.Lock, []string{"answer done already"}, ""},
		{"later than a repetition can be", "answer done lock", telematics.RepeatedWithin, telematics.Lock, []string{
			"answer done lock",
		}, ""},
	} {
		inWorld(t, 2, func(w *world) {
			w.addTruck(nil)
			w.truckAnswers(1, time.Second, c.first)
			first, _ := w.sendToTruck(0, telematics.Lock)
			if !first.State.IsFinal() {
				t.Fatalf("%s: %+v, want a final state", c.name, first)
			}
			w.mqtt.cars.Wait()
			time.Sleep(c.pause)
			w.truckSays(0, "locked no") // the unit is connected
			time.Sleep(time.Second)
			w.truckDoes(1, c.says...)
			second, err := w.sendToTruck(0, c.action)
			if w.wantCode(err, c.want); c.want == telematics.CommandTimeout &&
				(second.State != telematics.Unknown || err.Outcome != telematics.MayHave) {
				t.Errorf("%s: %+v, %+v; want unknown", c.name, second, err)
			}
		})
	}
}

// A repetition that comes to another instance before the command is published does not keep it from
// that.
func TestAssign_RepetitionBeforeThePublication(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.addTruck(withClock)
		w.truckAnswers(0, time.Second, "answer done lock")
		_, err := w.sendToTruck(0, telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		w.mqtt.cars.Wait()
		time.Sleep(5 * time.Second)
		// The command leaves at the end of a second.
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		time.AfterFunc(600*time.Millisecond, func() { w.truckSays(1, "answer done lock") })
		second, _ := w.sendToTruck(0, telematics.Lock)
		if second.Attempts != 1 || len(w.mqtt.published()) != 2 {
			t.Errorf("%+v after %d publications, want two", second, len(w.mqtt.published()))
		}
	})
}

// A unit that was given to a vehicle of another agency may still answer an earlier command: the
// refusal does not say which.
func TestAssign_AnotherAgencysCommandIsNotShown(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addTruck(nil)
		_, err := w.sendToTruck(0, telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		order := w.order(telematics.Unlock)
		w.Change(truckID, func(twin *telematics.Twin) { twin.AgencyID = 2 })
		order.Vehicle, order.Actor.Agency = truckID, 2
		_, err = w.sendVia(0, order)
		w.wantCode(err, telematics.CommandInProgress)
		if err.Command != telematics.NoCommand || strings.Contains(err.Message, string(telematics.Lock)) || err.RetryAfter < time.Minute {
			t.Errorf("%+v, want a refusal without the command and its action", err)
		}
	})
}

// truckStep is a command to the truck, what the truck says then, and what becomes of the command.
type truckStep struct {
	pause  time.Duration // before the command
	action telematics.Action
	after  time.Duration
	says   string
	want   telematics.State
}

func TestAssign_RepeatedAnswerAndLaterCommands(t *testing.T) {
	lock := func(want telematics.State) truckStep {
		return truckStep{0, telematics.Lock, time.Second, "answer done lock", want}
	}
	unlock := truckStep{0, telematics.Unlock, time.Second, "answer done unlock", telematics.Succeeded}
	late, muchLater := lock(telematics.Unknown), lock(telematics.Succeeded)
	already := truckStep{0, telematics.Lock, time.Second, "answer done already", telematics.Succeeded}
	alreadyAgain := already
	alreadyAgain.want = telematics.Unknown
	late.after, muchLater.pause = 15*time.Second, telematics.AnswerWithin+time.Minute
	for name, steps := range map[string][]truckStep{
		"equal commands with another one between them": {lock(telematics.Succeeded), unlock, lock(telematics.Succeeded), unlock},
		// The second lock's answer is one of the first, repeated. Its own comes after the unlock.
		"an answer that was overtaken": {
			lock(telematics.Succeeded), lock(telematics.Unknown), unlock, lock(telematics.Unknown),
		},
		"an answer that was overtaken, and not later":    {lock(telematics.Succeeded), lock(telematics.Unknown), unlock, muchLater},
		"answers that name a state which was so already": {lock(telematics.Succeeded), already, unlock, already},
		// The second lock may be answered still: by a text that is not known.
		"another text after a repetition":   {lock(telematics.Succeeded), lock(telematics.Unknown), alreadyAgain},
		"the other text, which is repeated": {lock(telematics.Succeeded), already, alreadyAgain},
		"a late answer, and none repeated":  {late, unlock, lock(telematics.Succeeded)},
	} {
		inWorld(t, 2, func(w *world) {
			w.addTruck(nil)
			for i, step := range steps {
				time.Sleep(step.pause)
				w.truckSays(0, "locked no") // the unit is connected
				time.Sleep(time.Second)
				w.truckAnswers(1, step.after, step.says)
				if c, _ := w.sendToTruck(0, step.action); c.State != step.want {
					t.Errorf("%s, command %d: %+v, want %s", name, i+1, c, step.want)
				}
				w.mqtt.cars.Wait()
				synctest.Wait()
			}
		})
	}
}

// The row of a command is stored, and the reply of its claim lost: it is not published. The answer
// is that to the command before it, or to a message of another sender.
func TestAssign_AnswerIsNotThatToAnUnpublishedCommand(t *testing.T) {
	for i := range 6 {
		before, x := []telematics.Action{telematics.Lock, telematics.Unlock}[i%2], &tampering{}
		at := min(i/2, 1) // the instance with the answer
		inWorldOf(t, []wiring{x.wire, nil}, func(w *world) {
			w.addTruck(nil)
			w.truckAnswers(0, time.Second, "answer done "+string(before))
			_, err := w.sendToTruck(0, before)
			w.wantCode(err, "")
			var lost telematics.CommandID
			x.claim = func(ctx context.Context, c telematics.Command) (delivery.Claim, error) {
				lost = c.ID
				_, err := x.Commands.Claim(ctx, &c)
				return delivery.Claim{}, errors.Join(errRefused, err)
			}
			w.Break(errRefused, "Settle")
			if i > 3 {
				w.Break(errRefused, "Lookup")
			}
			_, err = w.sendToTruck(0, telematics.Lock)
			w.wantCode(err, telematics.TelematicsUnavailable)
			w.truckSays(at, "answer done lock")
			synctest.Wait()
			w.Break(nil, "Settle")
			time.Sleep(time.Minute)
			if c := w.record(lost); c.State != telematics.Expired || w.count("motorpool_answers_to_none_total") != 1 {
				t.Errorf("%d, after %s: %+v, %v answers to none; want expired, and one answer to none", i, before, c,
					w.count("motorpool_answers_to_none_total"))
			}
		})
	}
}

func TestAssign_RedeliveredAnswerSettlesNothing(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addTruck(nil)
		// The MQTT broker delivers again what a broken connection did not acknowledge.
		w.mqtt.car = func(publication) {
			w.brokers[0].Answer(
				telematics.Message{Dialect: flag{}, Unit: truck, Subject: "data", Payload: []byte("answer done lock"), Redelivered: true},
			)
		}
		c, err := w.sendToTruck(0, telematics.Lock)
		w.wantCode(err, telematics.CommandTimeout)
		if c.State != telematics.Unknown || !c.ReceivedAt.IsZero() || w.count("motorpool_answers_to_none_total") != 1 {
			t.Errorf("%+v, want unknown, not received, and one answer to none", c)
		}
	})
}

// An answer that arrives while the record is unavailable is handled once that is available: its
// unit does not repeat it. Until then its command stays open, and the unit gets no other.
func TestAssign_AnswerWhileTheRecordIsUnavailable(t *testing.T) {
	for _, unavailable := range []string{"AwaitingAnswer", "Settle"} {
		inWorld(t, 1, func(w *world) {
			w.addTruck(nil)
			w.truckAnswers(0, time.Second, "answer done")
			w.Break(errRefused, unavailable)
			time.AfterFunc(5*time.Second, func() { w.Break(nil, unavailable) })
			_, err := w.sendToTruck(0, telematics.Lock)
			w.wantCode(err, "")

			w.truckAnswers(0, time.Second, "answer gone")
			w.Break(errRefused, unavailable)
			c, err := w.sendToTruck(0, telematics.Lock)
			w.wantCode(err, telematics.CommandTimeout)
			_, err = w.sendToTruck(0, telematics.Lock)
			w.wantCode(err, telematics.CommandInProgress)
			w.Break(nil, unavailable)
			time.Sleep(3 * time.Second) // the answer ends the wait for it
			_, err = w.sendToTruck(0, telematics.Lock)
			w.wantCode(err, telematics.CommandTimeout)
			lost := w.count(`motorpool_dropped_total{kind="answer", reason="not_stored"}`)
			if c = w.record(c.ID); c.State == telematics.Succeeded || c.State.IsOpen() || lost != 0 {
				t.Errorf("%s: %+v, want unknown or failed; %d answers lost, want none", unavailable, c, lost)
			}
		})
	}
}
