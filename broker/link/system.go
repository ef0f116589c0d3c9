package link

import (
	"strconv"
	"strings"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

// System has the topics on which an MQTT broker says what it holds.
var System = struct{ Retained, Heap string }{"$SYS/broker/retained messages/count", "$SYS/broker/heap/current"}

// watchSystem subscribes the connection for answers of a node to what the MQTT broker says of
// itself. An MQTT broker that has no such topics, or denies them, says nothing.
func (l *Link) watchSystem(client mqtt.Client, ln *connection) {
	if l.config.Holds != nil && ln.name == answersName {
		client.SubscribeMultiple(map[string]byte{System.Retained: 0, System.Heap: 0}, nil)
	}
}

// takeSystem passes on what an MQTT broker says of itself, and reports whether the message is such.
func (l *Link) takeSystem(node string, m mqtt.Message) bool {
	if !strings.HasPrefix(m.Topic(), "$SYS/") {
		return false
	}
	if value, err := strconv.ParseFloat(string(m.Payload()), 64); err == nil && l.config.Holds != nil {
		l.config.Holds(host(node), m.Topic(), value)
	}
	return true
}
