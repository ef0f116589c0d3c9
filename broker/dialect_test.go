package broker_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
	"motorpool/telematics/ovms"
	v1 "motorpool/telematics/v1"
)

// The van's unit speaks OVMS, the car's protocol v1.
const (
	vanID = telematics.VehicleID(43)
	van   = telematics.Unit("van-43")

	vanTopic = "ovms/van-43/van-43/"
	vanDone  = "Server V3 data update for all metrics has been scheduled"
)

// spoken are the dialects of the product and flag.
var spoken = append(telematics.Dialects{flag{}}, dialects.Spoken...)

func (w *world) addVan() {
	w.Put(telematics.Twin{
		Vehicle: telematics.Vehicle{
			ID: vanID, AgencyID: 1, Unit: van, Protocol: ovms.Protocol, Status: telematics.Available,
			Actions: telematics.ControlActions,
		},
		Contact: telematics.Contact{Status: telematics.Online, LastSeen: time.Now()}, BestEffortUnlock: true,
	})
}

// fromVan is a message of the van on a topic, as the MQTT broker delivers it.
func (w *world) fromVan(subject, payload string, retained bool) telematics.Message {
	return telematics.Message{Dialect: ovms.Dialect{}, Unit: van, Subject: subject, Payload: []byte(payload), Retained: retained}
}

// sendToVan orders what a module answers as executed.
func (w *world) sendToVan() (telematics.Command, *telematics.Error) {
	order := w.order(telematics.ReportState)
	order.Vehicle = vanID
	return w.sendVia(0, order)
}

// toVan returns the publications to the van, and toCar those to the car.
func (a *publisher) toVan() (to []publication) { return a.publishedUnder(vanTopic) }
func (a *publisher) toCar() (to []publication) {
	return a.publishedUnder(v1.CommandChannel.Topic(unit))
}

func (a *publisher) publishedUnder(topic string) (to []publication) {
	for _, p := range a.published() {
		if strings.HasPrefix(p.topic, topic) {
			to = append(to, p)
		}
	}
	return to
}

// vanAnswers makes the van answer through an instance after a delay.
func (w *world) vanAnswers(instance int, after time.Duration, says string) {
	w.mqtt.car = func(p publication) {
		if !strings.HasPrefix(p.topic, vanTopic) {
			return
		}
		time.Sleep(after)
		w.brokers[instance].Answer(w.fromVan("client/motorpool/response/"+filepath.Base(p.topic), says, false))
	}
}

func TestDialect_UnitWithoutSignatureAndExpiryGetsTheMessageOfItsDialect(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.addVan()
		w.vanAnswers(1, 3*time.Second, vanDone)
		c, err := w.sendToVan()
		w.wantCode(err, "")
		sent := w.mqtt.toVan()
		if c.State != telematics.Succeeded || len(sent) != 1 || string(sent[0].message) != "server v3 update all" || sent[0].qos != 0 ||
			sent[0].topic != vanTopic+"client/motorpool/command/"+c.ID.String() {
			t.Errorf("%s after %v, want succeeded after one message at QoS 0", c.State, sent)
		}
		w.vanAnswers(0, 3*time.Second, "Error: no vehicle")
		c, err = w.sendToVan()
		w.wantCode(err, telematics.CommandFailed)
		if c.Detail != "Error: no vehicle" || len(w.mqtt.toVan()) != 2 {
			t.Errorf("%+v after %d publications, want the detail %q after two", c, len(w.mqtt.toVan()), "Error: no vehicle")
		}
	})
}

// A module repeats no answer, so one is handled once Postgres is available again.
func TestDialect_AnswerWhileTheRecordIsUnavailable(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 25 * time.Second} { // in time; late
		inWorld(t, 2, func(w *world) {
			w.addVan()
			w.vanAnswers(1, after, vanDone)
			time.AfterFunc(after-500*time.Millisecond, func() { w.Pending.Flush(); w.Break(errUnavailable, "Settle") })
			time.AfterFunc(after+time.Second, func() { w.Break(nil, "Settle") })
			c, _ := w.sendToVan()
			w.mqtt.cars.Wait()
			time.Sleep(5 * time.Second)
			assert.Equal(t, w.record(c.ID).State, telematics.Succeeded, "the command, with an answer after "+after.String())
		})
	}
}

// What waits for Postgres is handled once more when the instance stops, or counted and logged.
func TestDialect_AnswerThatWaitsAtTheStop(t *testing.T) {
	for _, lost := range []int64{0, 1} {
		inWorld(t, 1, func(w *world) {
			w.addVan()
			w.vanAnswers(0, time.Second, vanDone)
			time.AfterFunc(500*time.Millisecond, func() { w.Break(errUnavailable, "Settle") })
			c, _ := w.sendToVan()
			w.mqtt.cars.Wait()
			if lost == 0 {
				w.Break(nil, "Settle")
			}
			w.stops[0]()
			w.stops = nil
			w.wantCount(`motorpool_dropped_total{kind="answer", reason="not_stored"}`, lost)
			logged := strings.Count(w.log.String(), "answer not stored")
			if settled := w.record(c.ID).State == telematics.Succeeded; settled != (lost == 0) || logged != int(lost) {
				t.Errorf("settled %v, %d lines of lost answers, want %d: %s", settled, logged, lost, w.log.String())
			}
		})
	}
}

// A module whose owner floods has no more answers waiting than its allowance, however long Postgres
// is unavailable.
func TestDialect_AnswersThatWaitAreLimited(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addVan()
		w.Break(errUnavailable, "Settle")
		const n = 1200
		for range n {
			w.brokers[0].Answer(w.fromVan("client/motorpool/response/"+uuid.NewString(), vanDone, false))
			time.Sleep(50 * time.Millisecond)
		}
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="not_stored"}`, n-512)
		time.Sleep(telematics.AnswerWithin + 2*time.Second)
		w.wantCount(`motorpool_dropped_total{kind="answer", reason="not_stored"}`, n)
	})
}

func TestDialect_UnitThatExecutesRepetitionsGetsOneMessageAndItsLateAnswerSettles(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addVan()
		w.vanAnswers(0, 25*time.Second, vanDone)
		silent := make(chan *telematics.Error)
		go func() { _, err := w.send(telematics.Lock); silent <- err }()
		c, err := w.sendToVan()
		w.wantCode(err, telematics.CommandTimeout)
		w.wantCode(<-silent, telematics.CommandTimeout)
		if c.State != telematics.Unknown || err.Outcome != telematics.MayHave || len(w.mqtt.toVan()) != 1 {
			t.Errorf("%s, %s after %d publications, want unknown after one", c.State, err.Outcome, len(w.mqtt.toVan()))
		}
		if len(w.mqtt.toCar()) < 3 {
			t.Errorf("the car of protocol v1 got %d messages, want at least 3", len(w.mqtt.toCar()))
		}
		w.mqtt.cars.Wait()
		synctest.Wait()
		if late := w.record(c.ID); late.State != telematics.Succeeded || !late.Late || len(w.mqtt.toVan()) != 1 {
			t.Errorf("%+v, want it settled late", late)
		}
	})
}

func TestDialect_RefusedPublicationIsRetriedOnlyUntilItIsTooLate(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addVan()
		w.vanAnswers(0, time.Second, vanDone)
		w.mqtt.fail(nil, errRefused)
		time.AfterFunc(200*time.Millisecond, func() { w.mqtt.fail(nil, nil) })
		_, err := w.sendToVan()
		w.wantCode(err, "")
		w.mqtt.fail(nil, errRefused)
		// Published after its expiry, the command would still be executed: the unit does not check
		// it.
		time.AfterFunc(6*time.Second, func() { w.mqtt.fail(nil, nil) })
		c, err := w.sendToVan()
		w.wantCode(err, telematics.TelematicsUnavailable)
		if c.State != telematics.Expired || err.Outcome != telematics.NotExecuted || len(w.mqtt.toVan()) != 1 {
			t.Errorf(
				"%s, %s after %d publications, want expired, and only the first command published", c.State,
				err.Outcome, len(w.mqtt.toVan()),
			)
		}
	})
}

func TestSend_UnitThatChecksNoExpiryMustBeOnline(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addVan()
		w.vanAnswers(0, time.Second, vanDone)
		w.brokers[0].Presence(w.fromVan("metric/s/v3/connected", "no", false))
		synctest.Wait()
		_, err := w.sendToVan()
		w.wantCode(err, telematics.VehicleOffline)
		w.brokers[0].Presence(w.fromVan("metric/s/v3/connected", "yes", false))
		synctest.Wait()
		_, err = w.sendToVan()
		w.wantCode(err, "")
		// Its record allows the action, but its protocol has no message for it.
		order := w.order(telematics.DisableDriving)
		order.Vehicle = vanID
		_, err = w.sendVia(0, order)
		w.wantCode(err, telematics.CommandNotSupported)
		assert.Equal(t, len(w.mqtt.toVan()), 1, "publications")
	})
}

// A module says that it is connected when it connects, and then seldom: before, it may have been of
// no vehicle. From then on its last will would be received.
func TestSend_UnitThatWasConnectedWhenItCameToItsVehicleIsOnlineByItsMessages(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addVan()
		w.vanAnswers(0, time.Second, vanDone)
		assigned, err := w.Twin(t.Context(), vanID)
		require.NoError(t, err)
		assigned.Contact = telematics.Contact{}
		w.Put(assigned)
		_, refusal := w.sendToVan()
		w.wantCode(refusal, telematics.VehicleOffline)
		w.brokers[0].Report(w.fromVan("metric/v/b/soc", "81", false))
		time.Sleep(time.Second) // reports are merged in batches
		_, refusal = w.sendToVan()
		w.wantCode(refusal, "")
		w.brokers[0].Presence(w.fromVan("metric/s/v3/connected", "no", false))
		synctest.Wait()
		_, refusal = w.sendToVan()
		w.wantCode(refusal, telematics.VehicleOffline)
	})
}

// An MQTT broker drops presence, at QoS 0, where thousands of units connect together.
func TestSend_UnitWhosePresenceWasDroppedIsOnlineByItsMessages(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.addVan()
		w.vanAnswers(0, time.Second, vanDone)
		w.brokers[0].Presence(w.fromVan("metric/s/v3/connected", "no", false))
		for soc, want := range []telematics.Code{telematics.VehicleOffline, ""} {
			w.brokers[0].Report(w.fromVan("metric/v/b/soc", strconv.Itoa(soc), false))
			time.Sleep(time.Second)
			_, refusal := w.sendToVan()
			w.wantCode(refusal, want)
			time.Sleep(telematics.UnreachableAfter)
		}
	})
}

func TestDialect_VehicleWithAnUnknownProtocolIsRefusedAndItsReportsIgnored(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		tomorrow := healthy()
		tomorrow.Protocol = "tomorrow"
		w.Put(tomorrow)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.TelematicsUnavailable)
		w.wantEntries(telematics.TelematicsUnavailable)
		speed := v1.EncodeReport(telematics.Report{At: time.Now(), Values: map[telematics.Field]any{telematics.SpeedKmh: 12.0}})
		w.brokers[0].Report(brokertest.Said(unit, speed, false))
		time.Sleep(time.Second)
		twin, _ := w.Twin(w.Context(), car)
		if len(w.mqtt.published()) > 0 || twin.Snapshot != nil || metric(t, w.brokers[0], "motorpool_protocol_mismatches_total") != 1 {
			t.Errorf(
				"%d publications, snapshot %v, %d protocol mismatches; want none, none, 1", len(w.mqtt.published()),
				twin.Snapshot, metric(t, w.brokers[0], "motorpool_protocol_mismatches_total"),
			)
		}
	})
}

func TestDialect_SingleValuesMakeOneSnapshot(t *testing.T) {
	inWorld(t, 2, func(w *world) {
		w.addVan()
		for i, m := range []telematics.Message{
			w.fromVan("metric/v/e/locked", "yes", false),
			w.fromVan("metric/v/p/speed", "31.5", false),
			w.fromVan("metric/v/p/speed", "fast", false), // dropped, counted
			w.fromVan("metric/x/mood", "fine", false),    // an unknown field: only a sign of life
			w.fromVan("metric/v/p/speed", "99", true),    // retained: its time is unknown
			w.fromVan("metric/v/b/soc", "81", false),
		} {
			w.brokers[i%2].Report(m)
			time.Sleep(time.Second)
		}
		synctest.Wait()
		twin, _ := w.Twin(w.Context(), vanID)
		ofArrival := 0
		for f := range twin.Snapshot.All() {
			if f.IsOfArrival() {
				ofArrival++
			}
		}
		if s := twin.Snapshot; s.Len()-ofArrival != 3 || s.Of(telematics.IsLocked).Value != true ||
			s.Of(telematics.SpeedKmh).Value != 31.5 || s.Of(telematics.Battery).Value != 81.0 {
			t.Errorf("snapshot %v, want locked, 31.5 km/h and 81 %%", s)
		}
		if at := twin.Snapshot.Of(telematics.SpeedKmh).At; !at.Equal(today.Add(time.Second)) {
			t.Errorf("the speed is dated %v, want its time of arrival", at)
		}
		dropped := w.count(`motorpool_report_fields_dropped_total{reason="wrong_type"}`)
		retained := w.count(`motorpool_dropped_total{kind="report", reason="retained"}`)
		if dropped != 1 || retained != 0 { // a module retains all metrics: that is no fault of it
			t.Errorf("%d fields dropped, %d retained reports counted; want one, none", dropped, retained)
		}
		w.brokers[0].Report(
			brokertest.Said(
				van,
				v1.EncodeReport(telematics.Report{At: time.Now(), Values: map[telematics.Field]any{telematics.SpeedKmh: 5.0}}),
				false,
			),
		)
		synctest.Wait()
		if twin, _ := w.Twin(w.Context(), vanID); twin.Snapshot.Of(telematics.SpeedKmh).Value != 31.5 {
			t.Errorf("a report in another protocol changed the van's snapshot: %v", twin.Snapshot)
		}
	})
}

// Differences between protocols belong to the dialects: code of the broker that names one would
// branch on it.
func TestBroker_NamesNoDialect(t *testing.T) {
	var files []string
	for _, folder := range []string{".", "besteffort", "link"} {
		in, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(in) == 0 {
			t.Fatalf("found no files: %v", err)
		}
		files = append(files, in...)
	}
	named := regexp.MustCompile(`telematics\.(V1|DefaultProtocol|ParseTopic|Decode[A-Z]\w*|[A-Z]\w*Channel)\b|(?i:ovms)|"v1"`)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for i, line := range strings.Split(string(source), "\n") {
			assert.Equal(t, named.FindString(line), "", "%s:%d names", file, i+1)
		}
	}
}
