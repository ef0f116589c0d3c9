package broker_test

import (
	"context"
	"errors"
	"reflect"
	"regexp"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// cacheRecord reads the car's record, so that it is cached.
func (w *world) cacheRecord() {
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
		w.Break(errors.New("not to be read"), "Twin") // which also reads the record
		c, err := w.send(telematics.Lock)
		w.wantCode(err, "")
		if c.Unit != unit || c.Agency != 1 {
			t.Errorf("command %+v, want the cached unit and agency", c)
		}
		_, err = w.send(telematics.Unlock) // which depends on the vehicle's state
		w.wantCode(err, telematics.TelematicsUnavailable)
	})
}

// silentContact is the contact of a unit that has been silent for an hour.
func silentContact(status telematics.PresenceStatus) telematics.Contact {
	long := time.Now().Add(-time.Hour)
	return telematics.Contact{Status: status, ChangedAt: long, LastSeen: long}
}

// Whatever has changed since the record was cached, an order ends as if the record had not been
// cached.
func TestSend_StaleRecordGivesTheSameResult(t *testing.T) {
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
		change   func(*telematics.Twin)
		actor    telematics.Actor
		key      *telematics.IdempotencyKey
		long     bool                // the change is older than the cached record
		repeated bool                // an order with the key was sent before
		halted   telematics.AgencyID // the agency that is halted after the change
		code     telematics.Code
		unit     telematics.Unit
		agency   telematics.AgencyID
	}{
		"unit offline": {
			change: func(t *telematics.Twin) { t.Contact = silentContact(telematics.Offline) }, code: telematics.VehicleOffline,
		},
		"unit in standby for long": {
			change: func(t *telematics.Twin) { t.Contact = silentContact(telematics.Standby) }, code: telematics.VehicleOffline,
		},
		"another unit": {
			change: func(t *telematics.Twin) { t.Unit = "another" }, unit: "another", agency: 1,
		},
		"no unit": {
			change: func(t *telematics.Twin) { t.Unit = "" }, code: telematics.VehicleHasNoUnit,
		},
		"another protocol": {
			change: func(t *telematics.Twin) { t.Protocol = "flag" }, unit: unit, agency: 1,
		},
		"a protocol without a dialect": {
			change: func(t *telematics.Twin) { t.Protocol = "semaphore" }, code: telematics.TelematicsUnavailable,
		},
		"action removed from the record": {
			change: func(t *telematics.Twin) { t.Actions = nil }, code: telematics.CommandNotSupported,
		},
		"action no longer declared by the unit": {
			change: func(t *telematics.Twin) { t.Contact.Actions = []telematics.Action{} }, code: telematics.CommandNotSupported,
		},
		"sold, order of the service":    {change: sold, unit: unit, agency: 2},
		"sold, order of the old agency": {change: sold, actor: mine, code: telematics.VehicleNotFound},
		"sold, order of the new agency": {change: sold, actor: theirs, unit: unit, agency: 2},
		"unchanged, order of another agency": {
			change: func(*telematics.Twin) {}, actor: theirs, code: telematics.VehicleNotFound,
		},
		"unit offline before it was cached": {
			change: func(t *telematics.Twin) { t.Contact = silentContact(telematics.Offline) }, long: true, code: telematics.VehicleOffline,
		},
		"action missing before it was cached": {
			change: func(t *telematics.Twin) { t.Actions = nil }, long: true, code: telematics.CommandNotSupported,
		},
		"agency halted":           {change: func(*telematics.Twin) {}, halted: 1, code: telematics.CommandsHalted},
		"sold, new agency halted": {change: sold, halted: 2, code: telematics.CommandsHalted},
		"sold, old agency halted": {change: sold, halted: 1, unit: unit, agency: 2},
		"sold, repeated order of the old agency": {
			change: sold, actor: mine, key: key, repeated: true, code: telematics.VehicleNotFound,
		},
		"sold, first order with the key of the new agency": {change: sold, actor: theirs, key: key, unit: unit, agency: 2},
		"unchanged, repeated order": {
			change: func(*telematics.Twin) {}, actor: mine, key: key, repeated: true, unit: unit, agency: 1,
		},
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
					if c.repeated {
						_, refused := w.sendVia(0, order)
						w.wantCode(refused, "")
					}
					w.mqtt.car = func(p publication) { // whichever unit gets the command
						time.Sleep(time.Second)
						twin, _ := w.Twin(w.Context(), car)
						if twin.Protocol == "flag" {
							w.brokers[0].Answer(telematics.Message{
								Dialect: flag{}, Unit: twin.Unit, Subject: "data", Payload: []byte("answer done"),
							})
						} else {
							w.answer(
								0, twin.Unit,
								telematics.Answer{Command: p.claims.Command, State: telematics.Succeeded, At: time.Now()},
							)
						}
					}
					if !c.long {
						w.cacheRecord()
					}
					w.Change(car, c.change)
					if c.long {
						w.cacheRecord()
					}
					if c.halted != 0 {
						w.Halt(telematics.Halt{Agency: c.halted, Why: "trial", Since: time.Now()})
					}
					if !cached {
						w.Uncache(car)
					}
					time.Sleep(5 * time.Second) // until the instance has read the halt
					got, refused := w.sendVia(0, order)
					end := ending{refused: refused, unit: got.Unit, agency: got.Agency, lines: w.Entries()}
					for _, p := range w.mqtt.published() {
						end.topics = append(end.topics, commandID.ReplaceAllString(p.topic, "<id>"))
					}
					for i := range end.lines {
						end.lines[i].Command = telematics.NoCommand
					}
					endings = append(endings, end)
					w.wantCode(refused, c.code)
					if refused == nil && (got.Unit != c.unit || got.Agency != c.agency) {
						t.Errorf("sent to %s of agency %d, want %s of %d", got.Unit, got.Agency, c.unit, c.agency)
					}
				})
			}
			if len(endings) == 2 && !reflect.DeepEqual(endings[0], endings[1]) {
				t.Errorf("with a cached record\n %+v\nwith one that is read\n %+v", endings[0], endings[1])
			}
		})
	}
}

// commandID matches the IDs of commands, which differ from run to run.
var commandID = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

func sold(t *telematics.Twin) { t.AgencyID = 2 }

func TestSend_VehicleCachedAsOfflineGetsCommandWhenItIsBack(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.answers(0, time.Second, telematics.Succeeded)
		w.Change(car, func(twin *telematics.Twin) { twin.Contact = silentContact(telematics.Offline) })
		w.cacheRecord()
		w.Change(car, func(twin *telematics.Twin) { twin.Contact = healthy().Contact })
		_, err := w.send(telematics.Lock)
		w.wantCode(err, "")
	})
}

func TestSend_CachedVehicleThatIsGoneIsNotFound(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.cacheRecord()
		w.Remove(car)
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.VehicleNotFound)
		w.wantEntries(telematics.VehicleNotFound)
	})
}

func TestSend_RecordThatChangesBeforeEachClaimIsReadOnceAgain(t *testing.T) {
	stale, x := 0, &tampering{}
	inWorldOf(t, between(x), func(w *world) {
		x.claim = func(ctx context.Context, c telematics.Command) (delivery.Claim, error) {
			w.Change(car, func(twin *telematics.Twin) { twin.Contact.Session += "+" })
			claim, err := x.Commands.Claim(ctx, &c)
			if claim.Stale {
				stale++
			}
			return claim, err
		}
		w.answers(0, time.Second, telematics.Succeeded)
		for range 3 {
			w.cacheRecord()
			_, err := w.send(telematics.Lock)
			w.wantCode(err, "")
		}
		assert.Equal(t, stale, 3, "orders accepted again")
	})
}

// While the record is unavailable, the cached one may be stale, so the audit log does not use its
// agency.
func TestSend_UnavailableRecordIsNotCached(t *testing.T) {
	inWorld(t, 1, func(w *world) {
		w.cacheRecord()
		w.Break(temporaryOutage{errors.New("connection refused")}, "Claim", "Twin")
		_, err := w.send(telematics.Lock)
		w.wantCode(err, telematics.TelematicsUnavailable)
		if twin, ok := w.Cached(car); ok {
			t.Errorf("cached %+v, want none", twin)
		}
		if lines := w.Entries(); len(lines) != 1 || lines[0].Agency != 0 || lines[0].Code != telematics.TelematicsUnavailable {
			t.Errorf("entries %+v, want one without an agency", lines)
		}
	})
}

func TestSend_RecordThatChangesWhileItsLaneIsFreedIsReadAgain(t *testing.T) {
	x := &tampering{}
	inWorldOf(t, between(x), func(w *world) {
		x.settle = func(ctx context.Context, s delivery.Settlement) (*telematics.Command, bool, error) {
			// While the occupant is settled.
			w.Change(car, func(twin *telematics.Twin) { twin.AgencyID = 2 })
			return x.Commands.Settle(ctx, s)
		}
		w.cacheRecord()
		w.claimed(2 * time.Second)
		time.Sleep(2*time.Second + time.Millisecond)
		order := w.order(telematics.Lock)
		order.Actor.Agency = 1
		_, err := w.sendVia(0, order)
		w.wantCode(err, telematics.VehicleNotFound)
		assert.Equal(t, len(w.mqtt.published()), 0, "publications")
	})
}
