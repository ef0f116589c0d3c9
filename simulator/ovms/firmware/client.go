package firmware

import (
	"strings"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// Client is a shell over MQTT, like the project's own: client/ovms_v3shell.pl. It may receive all
// messages of its vehicle, and send any to the module.
type Client struct {
	mqtt   paho.Client
	prefix string
	id     string

	mu      sync.Mutex // guards what follows
	metrics map[string]string
	said    []Heard
}

// Heard is a received message: a metric, an answer, an event or a notification.
type Heard struct{ Topic, Payload string }

// Dial connects a client. The topics below prefix are ovms/<user>/<vehicle id>.
func Dial(broker, user, password, vehicleID, clientID string) (*Client, error) {
	c := &Client{prefix: "ovms/" + user + "/" + vehicleID + "/", id: clientID, metrics: map[string]string{}}
	c.mqtt = paho.NewClient(paho.NewClientOptions().AddBroker(broker).SetProtocolVersion(4).SetClientID(clientID).
		SetUsername(user).SetPassword(password).
		SetWill(c.prefix+"client/"+clientID+"/active", "0", 0,
			false).SetAutoReconnect(false).SetConnectTimeout(10 * time.Second).SetKeepAlive(time.Minute))
	if token := c.mqtt.Connect(); token.Wait() && token.Error() != nil {
		return nil, token.Error()
	}
	if token := c.mqtt.Subscribe(c.prefix+"#", 0, c.receive); token.Wait() && token.Error() != nil {
		c.mqtt.Disconnect(0)
		return nil, token.Error()
	}
	return c, nil
}

// SetActive publishes whether the client is in use: if so, the module reports more often, for two
// minutes. The project's shell repeats it each minute.
func (c *Client) SetActive(active bool) {
	payload := "0"
	if active {
		payload = "1"
	}
	c.mqtt.Publish(c.prefix+"client/"+c.id+"/active", 0, false, payload).Wait()
}

// Close disconnects.
func (c *Client) Close() { c.mqtt.Disconnect(50) }

func (c *Client) receive(_ paho.Client, m paho.Message) {
	below := strings.TrimPrefix(m.Topic(), c.prefix)
	c.mu.Lock()
	defer c.mu.Unlock()
	if name, ok := strings.CutPrefix(below, "metric/"); ok && len(m.Payload()) > 0 {
		c.metrics[strings.ReplaceAll(name, "/", ".")] = string(m.Payload())
	}
	c.said = append(c.said, Heard{below, string(m.Payload())})
}

// Send sends a line to the shell. The answer has the same id.
func (c *Client) Send(id, line string) {
	c.mqtt.Publish(c.prefix+"client/"+c.id+"/command/"+id, 0, false, line).Wait()
}

// Request asks for the metrics of a list.
func (c *Client) Request(list string) {
	c.mqtt.Publish(c.prefix+"client/"+c.id+"/request/metric", 0, false, list).Wait()
}

// Answer returns what the module answered to the command with an id.
func (c *Client) Answer(id string) (string, bool) {
	return c.Last("client/" + c.id + "/response/" + id)
}

// Last returns what was last heard on a topic below the prefix.
func (c *Client) Last(below string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := len(c.said) - 1; i >= 0; i-- {
		if c.said[i].Topic == below {
			return c.said[i].Payload, true
		}
	}
	return "", false
}

// Metric returns the last value of a metric; empty: none was heard.
func (c *Client) Metric(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.metrics[name]
}
