package ovms

import (
	"errors"
	"fmt"
	"strings"

	"motorpool/telematics"
)

// Client is the name by which a module knows the service. All instances use the same one.
const Client = "motorpool"

// Parts of a topic after the unit (ovms_server_v3.cpp: Connect, TransmitMetric, RunCommand,
// TransmitNotificationAlert, TransmitEvents).
const (
	metrics       = "metric/"
	connected     = "metric/s/v3/connected"
	alerts        = "notify/alert/"
	vehicleAlerts = "event/vehicle/alert/"
	commands      = "client/" + Client + "/command/"
	responses     = "client/" + Client + "/response/"
)

const root = "ovms/"

// topic returns a topic of a unit. Its serial is both the module's user name, as the access rules
// require, and its vehicle id.
func topic(u telematics.Unit, last string) string {
	return root + string(u) + "/" + string(u) + "/" + last
}

var errOtherTopic = errors.New("the topic is not " + root + "{unit}/{unit}/..., with user name and vehicle id the same")

// ParseTopic implements telematics.Dialect. The subject is the part after the unit.
func (Dialect) ParseTopic(topic string) (telematics.Unit, string, error) {
	rest, ok := strings.CutPrefix(topic, root)
	user, rest, _ := strings.Cut(rest, "/")
	vehicle, subject, _ := strings.Cut(rest, "/")
	if !ok || subject == "" || user != vehicle {
		return "", "", errOtherTopic
	}
	unit, err := telematics.ParseUnit(user)
	if err != nil {
		return "", "", fmt.Errorf("topic %q: %w", topic, err)
	}
	return unit, subject, nil
}
