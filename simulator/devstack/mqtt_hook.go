package devstack

import (
	"bytes"
	"cmp"
	"crypto/subtle"
	"fmt"
	"log/slog"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"motorpool/mosquitto"
)

const (
	unitsListener   = "units"
	serviceListener = "service"
)

// The limits of mosquitto.conf.
const (
	maxMessageSize = 128 << 10
	maxPacketSize  = 256 << 10
)

// mqttHook authenticates clients of the embedded broker and enforces the access files.
type mqttHook struct {
	mochi.HookBase
	cfg      MQTTConfig
	access   map[string]access // by listener
	sessions *mqttSessions
	log      *slog.Logger
}

func newMQTTHook(cfg MQTTConfig, log *slog.Logger) (*mqttHook, error) {
	units, err := parseAccess(mosquitto.UnitsACL)
	if err != nil {
		return nil, fmt.Errorf("units: %w", err)
	}
	service, err := parseAccess(cmp.Or(cfg.ServiceAccess, mosquitto.ServiceACL))
	if err != nil {
		return nil, fmt.Errorf("service: %w", err)
	}
	return &mqttHook{
		cfg:      cfg,
		access:   map[string]access{unitsListener: units, serviceListener: service},
		sessions: newMQTTSessions(),
		log:      log,
	}, nil
}

func (h *mqttHook) ID() string { return "mosquitto access rules" }

func (h *mqttHook) Provides(event byte) bool {
	return bytes.IndexByte([]byte{
		mochi.OnConnectAuthenticate, mochi.OnACLCheck, mochi.OnPublish, mochi.OnPublishDropped, mochi.OnSelectSubscribers,
	}, event) >= 0
}

// OnConnectAuthenticate authenticates a client, and sets the client id of a unit. It must do that
// here: next, the broker searches the connection with the same id, to replace it.
func (h *mqttHook) OnConnectAuthenticate(cl *mochi.Client, pk packets.Packet) bool {
	user := string(cl.Properties.Username)
	if !h.knows(cl.Net.Listener, user, pk.Connect.Password) {
		h.log.Info("mqtt client refused: unknown user or wrong password", "listener", cl.Net.Listener, "user", user)
		return false
	}
	if cl.Net.Listener == unitsListener { // [TOP-4]
		cl.ID = user
		if cl.Properties.Props.AssignedClientID != "" {
			cl.Properties.Props.AssignedClientID = user
		}
	}
	// The broker publishes a last will without a check.
	if will := cl.Properties.Will; will.Flag != 0 && !h.mayPublish(cl, will.TopicName, will.Payload) {
		cl.Properties.Will = mochi.Will{}
	}
	h.sessions.takeOver(cl)
	return true
}

// knows reports whether user and password belong to an account of the listener.
func (h *mqttHook) knows(listener, user string, password []byte) bool {
	want, ok := "", false
	switch {
	case user == "":
	case listener == serviceListener:
		want, ok = h.cfg.ServicePassword, user == mosquitto.ServiceUser
	case h.cfg.UnitPassword != nil:
		want, ok = h.cfg.UnitPassword(user)
	}
	return ok && want != "" && subtle.ConstantTimeCompare([]byte(want), password) == 1
}

// OnACLCheck is called for every subscription and every delivery. OnPublish checks publications: a
// refusal here would disconnect the client, but Mosquitto acknowledges and drops the message.
func (h *mqttHook) OnACLCheck(cl *mochi.Client, filter string, writing bool) bool {
	return writing || h.may(cl, read, filter)
}

// OnPublish drops messages that the client may not publish.
func (h *mqttHook) OnPublish(cl *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	if !h.mayPublish(cl, pk.TopicName, pk.Payload) {
		return pk, packets.CodeSuccessIgnore
	}
	return pk, nil
}

// OnSelectSubscribers removes shared subscriptions from the receivers while NothingShared is true.
func (h *mqttHook) OnSelectSubscribers(to *mochi.Subscribers, _ packets.Packet) *mochi.Subscribers {
	if h.cfg.NothingShared != nil && h.cfg.NothingShared() {
		clear(to.Shared)
	}
	return to
}

// OnPublishDropped logs a message that was dropped because its receiver's queue was full.
func (h *mqttHook) OnPublishDropped(cl *mochi.Client, pk packets.Packet) {
	h.log.Warn("mqtt message dropped: the receiver is too slow", "client", cl.ID, "topic", pk.TopicName)
}

func (h *mqttHook) mayPublish(cl *mochi.Client, topic string, payload []byte) bool {
	switch {
	case !h.may(cl, write, topic):
		h.log.Info("mqtt message dropped: not allowed", "client", cl.ID, "topic", topic)
		return false
	case len(payload) > maxMessageSize:
		h.log.Info("mqtt message dropped: too large", "client", cl.ID, "topic", topic, "bytes", len(payload))
		return false
	}
	return true
}

func (h *mqttHook) may(cl *mochi.Client, want verb, filter string) bool {
	return h.access[cl.Net.Listener].may(string(cl.Properties.Username), cl.ID, want, filter)
}
