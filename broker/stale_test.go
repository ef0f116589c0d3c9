package broker_test

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// caches has the record of the car read, and cached.
func (w *world) caches() {
	w.Helper()
	if _, err := w.Record(w.Context(), car); err != nil {
		w.Fatal(err)
	}
	if _, ok := w.Cached(car); !ok {
		w.Fatal("the record is not cached")
	}
}

func TestSend_CachedVehicleIsNotRead(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		w.Break(errors.New("not to be read"), "Twin") // which a record is part of
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		if c.Unit != unit || c.Agency != 1 {
			t.Errorf("carried %+v", c)
		}
		_, err = w.send(telematics.Unlock) // which the vehicle's state can forbid
		w.wantCode(err, telematics.TelematicsUnavailable)
	})
}

// away is a contact of a unit that has been silent for long.
func away(status telematics.PresenceStatus) telematics.Contact {
	long := time.Now().Add(-time.Hour)
	return telematics.Contact{Status: status, ChangedAt: long, LastSeen: long}
}

// Whatever has changed since the record was cached, an order ends as if nothing was cached.
func TestSend_StaleRecordChangesNothing(t *testing.T) {
	type ending struct {
		refused *telematics.Error
		unit    telematics.Unit
		agency  telematics.AgencyID
		topics  []string
		lines   []telematics.Activity
	}
	mine := telematics.Actor{Subject: "admin-7", Role: telematics.Admin, Agency: 1}
	theirs := telematics.Actor{Subject: "admin-8", Role: telematics.Admin, Agency: 2}
	key := brokertest.NewKey()
	for name, c := range map[string]struct {
		change  func(*telematics.Twin)
		actor   telematics.Actor
		key     *telematics.IdempotencyKey
		long    bool                // it was so when it was cached
		carried bool                // an order under the key, before
		halted  telematics.AgencyID // once the record has changed
		code    telematics.Code
		unit    telematics.Unit
		agency  telematics.AgencyID
	}{
		"its unit has left":                       {change: func(t *telematics.Twin) { t.Contact = away(telematics.Offline) }, code: telematics.VehicleOffline},
		"its unit sleeps":                         {change: func(t *telematics.Twin) { t.Contact = away(telematics.Standby) }, code: telematics.VehicleOffline},
		"it has another unit":                     {change: func(t *telematics.Twin) { t.Unit = "another" }, unit: "another", agency: 1},
		"it has no unit":                          {change: func(t *telematics.Twin) { t.Unit = "" }, code: telematics.VehicleHasNoUnit},
		"its unit speaks otherwise":               {change: func(t *telematics.Twin) { t.Protocol = "morse" }, unit: unit, agency: 1},
		"no dialect has the protocol of its unit": {change: func(t *telematics.Twin) { t.Protocol = "semaphore" }, code: telematics.TelematicsUnavailable},
		"it cannot do it any more":                {change: func(t *telematics.Twin) { t.Actions = nil }, code: telematics.CommandNotSupported},
		"its unit cannot do it any more":          {change: func(t *telematics.Twin) { t.Contact.Actions = []telematics.Action{} }, code: telematics.CommandNotSupported},
		"it was sold, and is asked by all":        {change: sold, unit: unit, agency: 2},
		"it was sold, and is asked before":        {change: sold, actor: mine, code: telematics.VehicleNotFound},
		"it was sold, and is asked after":         {change: sold, actor: theirs, unit: unit, agency: 2},
		"it is another agency's":                  {change: func(*telematics.Twin) {}, actor: theirs, code: telematics.VehicleNotFound},
		"its unit has long left":                  {change: func(t *telematics.Twin) { t.Contact = away(telematics.Offline) }, long: true, code: telematics.VehicleOffline},
		"it could never do it":                    {change: func(t *telematics.Twin) { t.Actions = nil }, long: true, code: telematics.CommandNotSupported},
		"it is halted":                            {change: func(*telematics.Twin) {}, halted: 1, code: telematics.CommandsHalted},
		"it was sold to whom is halted":           {change: sold, halted: 2, code: telematics.CommandsHalted},
		"it was sold from whom is halted":         {change: sold, halted: 1, unit: unit, agency: 2},
		"it was sold after such an order":         {change: sold, actor: mine, key: key, carried: true, code: telematics.VehicleNotFound},
		"it was sold before such an order":        {change: sold, actor: theirs, key: key, unit: unit, agency: 2},
		"such an order was carried out":           {change: func(*telematics.Twin) {}, actor: mine, key: key, carried: true, unit: unit, agency: 1},
	} {
		t.Run(name, func(t *testing.T) {
			var endings []ending
			for _, cached := range []bool{true, false} {
				inWorld(t, 1, func(w *world) {
					order := w.order(telematics.Lock)
					order.RequestID, order.Idempotency = [16]byte{1}, c.key
					if c.actor != (telematics.Actor{}) {
						order.Actor = c.actor
					}
					w.answers(0, time.Second, telematics.Succeeded)
					if c.carried {
						_, refused := w.sendVia(0, order)
						w.wantCode(refused, "")
					}
					w.mqtt.car = func(p publication) { // any unit
						time.Sleep(time.Second)
						twin, _ := w.Twin(w.Context(), car)
						if twin.Protocol == "morse" {
							w.brokers[0].Answer(telematics.Message{Dialect: morse{}, Unit: twin.Unit, Subject: "response/" + p.topic[len(p.topic)-36:], Payload: []byte("done")})
						} else {
							w.answer(0, twin.Unit, telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()})
						}
					}
					if !c.long {
						w.caches()
					}
					w.Change(car, c.change)
					if c.long {
						w.caches()
					}
					if c.halted != 0 {
						w.Halt(telematics.Halt{Agency: c.halted, Why: "trial", Since: time.Now()})
					}
					if !cached {
						w.Uncache(car)
					}
					time.Sleep(5 * time.Second) // until a halt is known
					got, refused := w.sendVia(0, order)
					end := ending{refused: refused, unit: got.Unit, agency: got.Agency, lines: w.Entries()}
					for _, p := range w.mqtt.published() {
						end.topics = append(end.topics, aCommand.ReplaceAllString(p.topic, "<id>"))
					}
					for i := range end.lines {
						end.lines[i].Command = telematics.NoCommand
					}
					endings = append(endings, end)
					w.wantCode(refused, c.code)
					if refused == nil && (got.Unit != c.unit || got.Agency != c.agency) {
						t.Errorf("asked %s of agency %d, want %s of %d", got.Unit, got.Agency, c.unit, c.agency)
					}
				})
			}
			if len(endings) == 2 && !reflect.DeepEqual(endings[0], endings[1]) {
				t.Errorf("cached\n %+v\nread\n %+v", endings[0], endings[1])
			}
		})
	}
}

// aCommand is the id of one, which differs from run to run.
var aCommand = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func sold(t *telematics.Twin) { t.AgencyID = 2 }

func TestSend_VehicleCachedAsOfflineGetsCommandWhenItIsBack(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		w.Change(car, func(twin *telematics.Twin) { twin.Contact = away(telematics.Offline) })
		w.caches()
		w.Change(car, func(twin *telematics.Twin) { twin.Contact = healthy().Contact })
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
	})
}

func TestSend_CachedVehicleThatIsGoneIsNotFound(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.caches()
		w.Remove(car)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.VehicleNotFound)
		w.wantEntries(telematics.VehicleNotFound)
	})
}

// restless is a record that changes each time before it is claimed by.
type restless struct {
	broker.Commands
	memory   *brokertest.Memory
	accepted *int // orders that were accepted anew
}

func (r restless) Claim(ctx context.Context, c *telematics.Command, accept func() (*telematics.Command, error)) (delivery.Claim, error) {
	change := func() {
		r.memory.Change(car, func(twin *telematics.Twin) { twin.Contact.Session += "+" })
	}
	change()
	return r.Commands.Claim(ctx, c, func() (*telematics.Command, error) {
		*r.accepted++
		defer change()
		return accept()
	})
}

func TestSend_RecordThatChangesAllTheTimeDelaysNothing(t *testing.T) {
	var accepted int
	changing := func(m *brokertest.Memory, c *broker.Config) { c.Commands = restless{c.Commands, m, &accepted} }
	inWorldOf(t, []wiring{changing}, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		for range 3 {
			w.caches()
			_, err := w.send(telematics.Lock)
			w.wantCode(err, "")
		}
		if accepted != 3 {
			t.Errorf("%d orders were accepted anew, want each once", accepted)
		}
	})
}

// While the record is unavailable, nothing confirms the cached one, so the audit log does not
// repeat what it says.
func TestSend_UnavailableRecordIsNotCached(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.caches()
		w.Break(awayForNow{errors.New("connection refused")}, "Claim", "Twin")
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.TelematicsUnavailable)
		if twin, ok := w.Cached(car); ok {
			t.Errorf("cached %+v", twin)
		}
		if lines := w.Entries(); len(lines) != 1 || lines[0].Agency != 0 || lines[0].Code != telematics.TelematicsUnavailable {
			t.Errorf("lines %+v", lines)
		}
	})
}

// late is a record that changes while an overdue occupant of a lane is settled.
type late struct {
	broker.Commands
	memory *brokertest.Memory
}

func (l late) Settle(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
	l.memory.Change(car, func(twin *telematics.Twin) { twin.AgencyID = 2 })
	return l.Commands.Settle(ctx, s)
}

func TestSend_RecordThatChangesWhileItsLaneIsFreedIsReadAgain(t *testing.T) {
	changing := func(m *brokertest.Memory, c *broker.Config) { c.Commands = late{c.Commands, m} }
	inWorldOf(t, []wiring{changing}, func(w *world) {
		w.caches()
		w.claimed(2 * time.Second)
		time.Sleep(2*time.Second + time.Millisecond)
		order := w.order(telematics.Lock)
		order.Actor.Agency = 1
		_, err := w.sendVia(0, order)
		w.wantCode(err, telematics.VehicleNotFound)
		if n := len(w.mqtt.published()); n != 0 {
			t.Errorf("%d publications", n)
		}
	})
}
