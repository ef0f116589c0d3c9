package ovms

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eclipse/paho.mqtt.golang/packets"

	"motorpool/internal/assert"
	"motorpool/simulator"
	codec "motorpool/telematics/ovms"
)

// The forms in which the firmware writes values (main/ovms_metrics.cpp, main/metrics_standard.cpp).
const (
	text   = `.*`
	yesNo  = `yes|no`
	whole  = `-?\d+`
	number = `-?\d{1,6}(\.\d{1,5})?(e\+\d\d)?` // six significant digits
	fixed  = `-?\d+\.\d{6}`
	clock  = `\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [A-Z]+`
)

var forms = map[string]string{
	"m.version": text, "s.v3.connected": yesNo, "s.v3.peers": whole, "v.type": text, "v.b.soc": number, "v.b.range.est": number,
	"v.b.12v.voltage": number, "v.c.state": text, "v.c.charging": yesNo, "v.c.pilot": yesNo, "v.d.fl": yesNo, "v.d.fr": yesNo,
	"v.d.rl": yesNo, "v.d.rr": yesNo, "v.d.trunk": yesNo, "v.e.on": yesNo, "v.e.awake": yesNo, "v.e.locked": yesNo, "v.e.valet": yesNo,
	"v.e.handbrake": yesNo, "v.e.gear": whole, "v.e.serv.range": whole, "v.p.latitude": fixed, "v.p.longitude": fixed,
	"v.p.direction": number, "v.p.speed": number, "v.p.odometer": number, "v.p.gpslock": yesNo, "v.p.gpstime": clock,
}

const moved = "Vehicle is being transported while parked - possible theft/flatbed (@48.148701,11.568000)"

// What a module sends is written here as the firmware does it: components/ovms_server_v3/src of
// github.com/openvehicles/Open-Vehicle-Monitoring-System-3 at commit 1aa1daff19c5.
func TestModule_SendsWhatTheFirmwareDoes(t *testing.T) {
	t.Parallel()
	w := begin(t, Config{Type: "NL", PIN: "4711", Speed: 20})
	w.await(onceItListens, "metric/v/e/locked", "no")
	// It reads as connected before it subscribes.
	eventually(t, "it has subscribed", func() bool { return len(PacketsOf[*packets.SubackPacket](w.tap.Arrived())) > 0 })
	w.send("client/motorpool/active", "1")
	w.sends("event/app/connected")
	command := func(id, line, answer string) {
		t.Helper()
		w.send("client/motorpool/command/"+id, line)
		w.await(1, "client/motorpool/response/"+id, answer)
	}
	command("1", "lock 4711", "Vehicle locked")
	w.await(1, "metric/v/e/locked", "yes")
	// The repeated command changes nothing: neither a metric nor an event follows.
	command("again", "lock 4711", "Vehicle locked")
	unlocked := w.count("metric/v/e/locked", "no")
	command("2", "unlock 4711", "Vehicle unlocked")
	w.await(unlocked+1, "metric/v/e/locked", "no")
	command("3", "lock", "Usage: lock <pin>")
	command("4", "unlock 1 2", "Usage: unlock <pin>")
	command("5", "nonsense", "Unrecognised command")
	w.module.Alert(t.Context(), "alarm.sounding", "Vehicle alarm is sounding")
	w.module.Alert(t.Context(), "batt.12v.alert", "12V Battery critical: 11.1V (ref=12.6V)")
	w.module.Alert(t.Context(), "flatbed.moved", moved)
	for _, on := range []bool{true, false} {
		w.module.Do(t.Context(), func(b *simulator.Body, _ *Faults) { b.Ignition = on })
	}
	all := len(w.metrics())
	command("6", "server v3 update all", "Server V3 data update for all metrics has been scheduled")
	eventually(t, "all metrics are sent again", func() bool { return len(w.metrics()) >= all+20 })
	// The access rules keep this request from every module.
	w.module.Ask(t.Context(), func() {
		w.module.receive(t.Context(), message{ovms("client/motorpool/request/metric"), "v.b.*", w.module.attempt})
	})
	w.send("client/motorpool/active", "0")
	w.sends("event/app/disconnected")
	w.tap.Cut()
	w.await(1, "metric/s/v3/connected", "no")

	login := PacketsOf[*packets.ConnectPacket](w.tap.Sent())[0]
	if login.CleanSession || login.ProtocolVersion != 4 || login.ClientIdentifier != "OV-1" || login.Username != "OV-1" ||
		login.Keepalive != 60 || login.WillTopic != ovms("metric/s/v3/connected") || string(login.WillMessage) != "no" ||
		login.WillQos != 0 || !login.WillRetain {
		t.Errorf("it logs in with %v", login)
	}
	for _, p := range PacketsOf[*packets.SubscribePacket](w.tap.Sent()) {
		slices.Sort(p.Topics) // the order of a map is random
		assert.EqualSlices(t, p.Topics, []string{
			ovms("client/+/active"), ovms("client/+/command/+"), ovms("client/+/request/config"), ovms("client/+/request/metric"),
		}, "it subscribes to")
		assert.EqualSlices(t, p.Qoss, []byte{1, 1, 1, 1}, "with QoS")
	}
	assert.EqualSlices(t, w.story(), []string{
		`event/server/v3/connected="" QoS 0`, `event/app/connected="" QoS 0`,
		`client/motorpool/response/1="Vehicle locked\n" QoS 1`, `metric/v/e/locked="yes" QoS 0`, `event/vehicle/locked="" QoS 0`,
		`client/motorpool/response/again="Vehicle locked\n" QoS 1`,
		`client/motorpool/response/2="Vehicle unlocked\n" QoS 1`, `metric/v/e/locked="no" QoS 0`, `event/vehicle/unlocked="" QoS 0`,
		`client/motorpool/response/3="Usage: lock <pin>\n" QoS 1`, `client/motorpool/response/4="Usage: unlock <pin>\n" QoS 1`,
		`client/motorpool/response/5="Unrecognised command\n" QoS 1`,
		`notify/alert/alarm/sounding="Vehicle alarm is sounding" QoS 1`, `event/vehicle/alarm/on="" QoS 0`,
		`notify/alert/batt/12v/alert="12V Battery critical: 11.1V (ref=12.6V)" QoS 1`, `event/vehicle/alert/12v/on="" QoS 0`,
		`notify/alert/flatbed/moved="` + moved + `" QoS 1`, `event/location/alert/flatbed/moved="" QoS 0`,
		`event/vehicle/on="" QoS 0`, `event/vehicle/off="" QoS 0`,
		`client/motorpool/response/6="Server V3 data update for all metrics has been scheduled\n" QoS 1`,
		`event/app/disconnected="" QoS 0`,
	}, "it publishes")
	for _, name := range codec.Metrics() {
		if !slices.ContainsFunc(w.metrics(), func(p *packets.PublishPacket) bool { return metricOf(p) == name }) {
			t.Errorf("it does not publish %s", name)
		}
	}
	for _, p := range w.metrics() {
		form, known := forms[metricOf(p)]
		if !known || !regexp.MustCompile(`^(`+form+`)$`).Match(p.Payload) || p.Qos != 0 || !p.Retain {
			t.Errorf("%s=%q with QoS %d, retained %v: the firmware has no such message", metricOf(p), p.Payload, p.Qos, p.Retain)
		}
	}
}

// published returns what the module has published, in order.
func (w world) published() []*packets.PublishPacket {
	return PacketsOf[*packets.PublishPacket](w.tap.Sent())
}

func below(p *packets.PublishPacket) string { return strings.TrimPrefix(p.TopicName, ovms("")) }

func (w world) sends(topic string) {
	w.t.Helper()
	eventually(w.t, topic, func() bool {
		return slices.ContainsFunc(w.published(), func(p *packets.PublishPacket) bool { return below(p) == topic })
	})
}

func (w world) metrics() []*packets.PublishPacket {
	return slices.DeleteFunc(w.published(), func(p *packets.PublishPacket) bool { return metricOf(p) == "" })
}

// metricOf returns the name of a metric; empty: the message is none.
func metricOf(p *packets.PublishPacket) string {
	name, _ := strings.CutPrefix(below(p), "metric/")
	if name == below(p) {
		return ""
	}
	return strings.ReplaceAll(name, "/", ".")
}

// story returns all publications except metrics in order, and the state of the locks when it
// changes.
func (w world) story() (all []string) {
	locked := "no"
	for _, p := range w.published() {
		payload := string(p.Payload)
		switch name := metricOf(p); {
		case name == "v.e.locked" && payload != locked:
			locked = payload
		case name != "":
			continue
		}
		all = append(all, fmt.Sprintf("%s=%q QoS %d", below(p), payload, p.Qos))
		assert.Equal(w.t, p.Retain, metricOf(p) != "", "%s is retained", below(p))
	}
	return all
}
