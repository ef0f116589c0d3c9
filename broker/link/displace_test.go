package link_test

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/broker/link"
	"motorpool/broker/link/linktest"
	"motorpool/mosquitto"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// retainedAt returns what the MQTT broker retains, by topic, as far as the service may read it.
func retainedAt(t *testing.T, url string) map[string]string {
	t.Helper()
	var mu sync.Mutex
	found := map[string]string{}
	client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(url).SetClientID("reader").SetUsername(mosquitto.ServiceUser).
		SetPassword(linktest.ServicePassword).SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) {
		mu.Lock()
		defer mu.Unlock()
		found[m.Topic()] = string(m.Payload())
	}))
	linktest.Await(t, "connect", client.Connect())
	defer client.Disconnect(0)
	linktest.Await(t, "subscribe", client.SubscribeMultiple(map[string]byte{
		"ovms/+/+/metric/#": 1, "ovms/+/+/notify/alert/#": 1,
		"ovms/+/+/event/vehicle/alert/#": 1, "ovms/+/+/client/motorpool/response/+": 1,
		"motorpool/v1/+/presence": 1,
	}, nil))
	time.Sleep(100 * time.Millisecond) // retained messages follow the SUBACK
	mu.Lock()
	defer mu.Unlock()
	return found
}

func TestDisplace_RemovedUnitIsOfflineAndRetainsNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		says map[string]string
		left map[string]string
	}{
		"OVMS": {
			says: map[string]string{
				"ovms/$/$/metric/s/v3/connected": "yes", "ovms/$/$/metric/v/p/latitude": "48.137400", "ovms/$/$/metric/v/b/soc": "61",
				"ovms/$/$/metric/x/nl/own": "1",
			},
			left: map[string]string{"ovms/$/$/metric/s/v3/connected": "no"},
		},
		"v1": {
			says: map[string]string{"motorpool/v1/$/presence": `{"status":"online","session":"a"}`},
			left: map[string]string{
				"motorpool/v1/$/presence": string(v1.EncodePresence(telematics.Presence{Status: telematics.Offline, Session: "a"})),
			},
		},
		"without retained messages": {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := realMosquitto(t)
			own := func(topic string) string { return strings.ReplaceAll(topic, "$", string(unit)) }
			client := linktest.Connect(t, broker.UnitsURL(), unit)
			for topic, payload := range c.says {
				linktest.Publish(t, client, own(topic), true, payload)
			}
			config := link.Config{Nodes: []string{broker.ServiceURL()}, Username: mosquitto.ServiceUser, Password: linktest.ServicePassword}
			before := retainedAt(t, broker.ServiceURL())
			if left, err := link.Displace(t.Context(), config, unit); err != nil || len(left) > 0 {
				t.Fatalf("%v, %v", left, err)
			}
			after := retainedAt(t, broker.ServiceURL())
			var topics []string
			for topic, payload := range c.left {
				if topics = append(topics, own(topic)); after[own(topic)] != payload {
					t.Errorf("%s retains %q, want %q", own(topic), after[own(topic)], payload)
				}
			}
			for topic := range after {
				if !slices.Contains(topics, topic) {
					t.Errorf("%s is still retained, of %v", topic, before)
				}
			}
			if client.IsConnectionOpen() {
				t.Error("the unit's connection is still open")
			}
		})
	}
}

// A login retains messages under ever new names, more than the MQTT broker delivers at a time, and
// some where the service may not write.
func TestDisplace_ClearsAllThatAHostileUnitRetains(t *testing.T) {
	t.Parallel()
	broker := realMosquitto(t)
	client := linktest.Connect(t, broker.UnitsURL(), unit)
	own := func(last string) string { return "ovms/" + string(unit) + "/" + string(unit) + "/" + last }
	payload := strings.Repeat("x", 2000)
	const names = 2600
	var last mqtt.Token
	for n := range names {
		for _, folder := range []string{"client/motorpool/response/", "notify/alert/a/", "metric/x/", "event/vehicle/alert/"} {
			last = client.Publish(own(folder+strconv.Itoa(n)), 1, true, payload)
		}
	}
	linktest.Await(t, "publish", last)
	linktest.Publish(t, client, "motorpool/v1/"+string(unit)+"/ack", true, "{}")
	linktest.Publish(t, client, own("metric/s/v3/connected"), true, "yes")

	config := link.Config{Nodes: []string{broker.ServiceURL()}, Username: mosquitto.ServiceUser, Password: linktest.ServicePassword}
	for range 2 { // it may be repeated
		left, err := link.Displace(t.Context(), config, unit)
		if want := []string{"motorpool/v1/" + string(unit) + "/ack"}; err != nil || !slices.Equal(left, want) {
			t.Fatalf("left are %d, %v, %v; want %v", len(left), left[:min(len(left), 5)], err, want)
		}
	}
	if after := retainedAt(t, broker.ServiceURL()); len(after) != 1 || after[own("metric/s/v3/connected")] != "no" {
		t.Errorf("%d messages are retained, want the presence alone", len(after))
	}
}
