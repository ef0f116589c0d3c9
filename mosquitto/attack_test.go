package mosquitto_test

import (
	"fmt"
	"strings"
	"testing"

	"motorpool/mosquitto"
)

// attacks are what an attacker with a unit might try, in sequence, against the production
// configuration in the real Mosquitto and in the embedded broker. Each is judged by the delivered
// messages, never by a return code. Each also sends a permitted message in the same way, so that a
// missing message means a refusal and not a broken test.
var attacks = []struct {
	name string
	run  func(world)
}{
	{"a unit reads only its own commands", attempt{dialect: v1, reads: victimsCommands}.run},
	{"with wildcards a unit reads only its own commands", attempt{dialect: v1, reads: everything}.run},
	{"a unit answers and reports only for itself", attempt{dialect: v1, speaks: true}.run},
	{"a last will is accepted only for its own unit", attempt{dialect: v1, wills: true}.run},
	{"a unit cannot send commands, retained or not", attempt{dialect: v1, orders: true}.run},
	{"a retained presence is delivered later and the service can clear it", retainsItsPresence},
	{"a retained answer is marked when it is delivered later", retainsItsAnswer},
	{"a unit in a group with a guessed name takes no message of the service", joinsAGuessedGroup},
	{"a unit in the service's own group reads nothing", joinsTheSecretGroup},
	{"a unit cannot take another's client id", takesAnothersClientID},
	{"a unit cannot take the service's client id", takesTheServicesClientID},
	{"a unit can replace its own connection", replacesItself},
	{"a unit named like the service has a unit's rights", isNamedLikeTheService},
	{"no client connects without a valid login", connectsWithoutALogin},
	{"a login is valid only for its listener", usesTheOtherListener},
	{"the service can neither read commands nor answer for a unit", v1.abusedByTheService("$SYS/#", "#")},
	{"an oversized report is dropped", sendsTooMuch},
	{"a unit can neither forge nor take the service's probe", spoilsTheProbe},
	{"OVMS: a unit reads only its own command lines", attempt{dialect: ovmsModule, reads: ovmsFilters}.run},
	{"OVMS: a unit answers, reports and alerts only for itself", attempt{dialect: ovmsModule, speaks: true}.run},
	{"OVMS: a last will is accepted only for its own unit", attempt{dialect: ovmsModule, wills: true}.run},
	{"OVMS: a unit cannot write a command line for any unit", attempt{dialect: ovmsModule, orders: true}.run},
	{"OVMS: no account requests or publishes the settings of a module", ovmsReadsSettings},
	{"OVMS: the service neither reads command lines nor speaks for a unit", ovmsModule.abusedByTheService()},
	{"OVMS: retained values are marked, and no answer is delivered twice as fresh", ovmsRetains},
	{"Teltonika: a unit reads only its own commands", attempt{dialect: tracker, reads: teltonikaFilters}.run},
	{"Teltonika: a unit answers, reports and leaves a will only for itself", attempt{dialect: tracker, speaks: true, wills: true}.run},
	{"Teltonika: a unit cannot write a command for any unit", attempt{dialect: tracker, orders: true}.run},
	{"Teltonika: the service neither reads commands nor speaks for a unit", tracker.abusedByTheService("teltonika/#")},
	{"a command at QoS 0 does not wait for an absent unit", absentUnitsFindNoCommand},
}

func TestEmbeddedBroker_WithstandsEveryAttack(t *testing.T) {
	t.Parallel()
	broker := embedded(t)
	for i, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			attack.run(world{t, broker, i, victimOf(i), attackerOf(i)})
		})
	}
}

func TestMosquitto_WithstandsEveryAttack(t *testing.T) {
	t.Parallel()
	broker := realMosquitto(t, unitNames())
	for i, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			attack.run(world{t, broker, i, victimOf(i), attackerOf(i)})
		})
	}
}

func victimsCommands(w world) []string { return []string{topic(w.victim, "command")} }

func everything(w world) []string {
	return []string{
		"#", "+/#", "$SYS/#", "$SYS/broker/version", "motorpool/#", "motorpool/v1/+/+", all("command"), all("ack"),
		all("presence"), "$share/g/#", "$share/g/$SYS/#", "$SHARE/g/motorpool/v1/#", shared("g", "command"),
		shared("g", "telemetry"), topic(w.victim, "#"),
	}
}

func retainsItsPresence(w world) {
	// The earlier instance receives the message when the broker has delivered it. A later instance
	// then receives the retained copy.
	filters := []string{topic(w.victim, "presence"), topic(w.attacker, "presence")}
	earlier := w.service().mustDial(w.t)
	earlier.subscribe(filters...)
	w.unit(w.victim).mustDial(w.t).publishRetained(topic(w.victim, "presence"), "online")
	w.unit(w.attacker).mustDial(w.t).publishRetained(topic(w.attacker, "presence"), "other")
	earlier.await("online")
	earlier.await("other")

	service := w.anotherInstance().mustDial(w.t)
	service.subscribe(filters...)
	if m := service.await("online"); !m.retained {
		w.t.Errorf("the presence was received as %+v, want it retained", m)
	}
	service.publishRetained(topic(w.victim, "presence"), "") // [PRE-1]
	earlier.await("")

	later := w.anotherInstance().mustDial(w.t)
	later.subscribe(filters...)
	later.await("other")
	later.onlyReceived("other")
}

// retainsItsAnswer leaves a retained answer for an instance that connects later. The broker allows
// it: the instance drops messages that are marked as retained [ACK-4]. (Mosquitto 2.0.11 delivers
// it to shared subscriptions, too, which the standard forbids.)
func retainsItsAnswer(w world) {
	attacker, earlier := w.unit(w.attacker).mustDial(w.t), w.service().mustDial(w.t)
	earlier.subscribe(all("ack"))
	attacker.publishRetained(topic(w.attacker, "ack"), "stale")
	w.t.Cleanup(func() { attacker.publishRetained(topic(w.attacker, "ack"), "") })
	earlier.await("stale")

	for _, filter := range []string{shared(w.secretGroup(), "ack"), all("ack")} {
		service := w.anotherInstance().mustDial(w.t)
		service.subscribe(filter)
		attacker.publish(topic(w.attacker, "ack"), "fresh "+filter)
		if m := service.await("fresh " + filter); m.retained {
			w.t.Errorf("%s: a new answer is marked as retained", filter)
		}
		for _, m := range service.messages() {
			if m.payload == "stale" && !m.retained {
				w.t.Errorf("%s: a retained answer is not marked as retained", filter)
			}
		}
		if filter == all("ack") {
			service.await("stale")
		}
	}
}

const answers = 40

// answerAll makes the victim answer many times, and returns when the service has received all that
// it will receive.
func answerAll(w world, service *client) {
	service.subscribe(shared(w.secretGroup(), "ack"), all("telemetry"))
	victim := w.unit(w.victim).mustDial(w.t)
	for i := range answers {
		victim.publish(topic(w.victim, "ack"), fmt.Sprintf("answer %d", i))
	}
	victim.publish(topic(w.victim, "telemetry"), "all answered")
	service.await("all answered")
}

// answersAmong counts the victim's answers. An embedded broker acknowledges before it delivers, so
// the removal of a retained message by another test may arrive here, too.
func answersAmong(messages []message) (n int) {
	for _, m := range messages {
		if strings.HasPrefix(m.payload, "answer ") {
			n++
		}
	}
	return n
}

func joinsAGuessedGroup(w world) {
	attacker, service := w.unit(w.attacker).mustDial(w.t), w.service().mustDial(w.t)
	attacker.subscribe(
		shared("motorpool", "ack"), shared("service", "ack"), shared("+", "ack"), shared("#", "ack"),
		topic(w.attacker, "command"),
	)
	answerAll(w, service)
	if got := answersAmong(service.messages()); got != answers {
		w.t.Errorf("the service received %d answers, want %d: %+v", got, answers, service.messages())
	}
	service.publish(topic(w.attacker, "command"), "for the attacker")
	attacker.await("for the attacker")
	attacker.onlyReceived("for the attacker")
}

// joinsTheSecretGroup shows why the name is secret: Mosquitto assigns a member a share of messages
// that it may not read, and that share is lost. How much is lost depends on Mosquitto and is only
// logged; the test checks that the unit reads nothing.
func joinsTheSecretGroup(w world) {
	attacker, service := w.unit(w.attacker).mustDial(w.t), w.service().mustDial(w.t)
	attacker.subscribe(shared(w.secretGroup(), "ack"), topic(w.attacker, "command"))
	answerAll(w, service)
	w.t.Logf("with a unit in the group the service received %d of %d answers", answersAmong(service.messages()), answers)
	service.publish(topic(w.attacker, "command"), "for the attacker")
	attacker.await("for the attacker")
	attacker.onlyReceived("for the attacker")
}

func takesAnothersClientID(w world) {
	serial := w.unit(w.victim)
	serial.id = w.victim
	victim, service := serial.mustDial(w.t), w.service().mustDial(w.t)
	victim.subscribe(topic(w.victim, "command"))

	l := w.unit(w.attacker)
	l.id = w.victim
	attacker := l.mustDial(w.t)
	attacker.subscribe(topic(w.attacker, "command"))
	service.publish(topic(w.victim, "command"), "for the victim")
	service.publish(topic(w.attacker, "command"), "for the attacker")

	victim.await("for the victim")
	attacker.await("for the attacker")
	if !victim.connected() {
		w.t.Error("the victim was disconnected")
	}
	attacker.onlyReceived("for the attacker")
}

func takesTheServicesClientID(w world) {
	service := w.service().mustDial(w.t)
	service.subscribe(all("ack"))

	l := w.unit(w.attacker)
	l.id = w.service().id
	attacker := l.mustDial(w.t)
	attacker.publish(topic(w.attacker, "ack"), "hello")

	service.await("hello")
	if !service.connected() {
		w.t.Error("the service was disconnected")
	}
}

func replacesItself(w world) {
	service := w.service().mustDial(w.t)
	l := w.unit(w.victim)
	old := l.mustDial(w.t)
	l.id = "an-id-that-it-did-not-use-before"
	replacement := l.mustDial(w.t)
	old.awaitLost()

	replacement.subscribe(topic(w.victim, "command"))
	service.publish(topic(w.victim, "command"), "for the victim")
	replacement.await("for the victim")
}

func isNamedLikeTheService(w world) {
	service, victim := w.service().mustDial(w.t), w.unit(w.victim).mustDial(w.t)
	victim.subscribe(topic(w.victim, "command"))
	service.subscribe(all("telemetry"))

	impostor := w.unit(mosquitto.ServiceUser).mustDial(w.t)
	impostor.subscribe(all("ack"), all("telemetry"), all("presence"), topic(mosquitto.ServiceUser, "command"))
	impostor.publish(topic(w.victim, "command"), "forged")
	impostor.publish(topic(mosquitto.ServiceUser, "telemetry"), "genuine")
	service.await("genuine")
	victim.publish(topic(w.victim, "telemetry"), "victim's")
	service.await("victim's")
	service.publish(topic(w.victim, "command"), "for the victim")
	service.publish(topic(mosquitto.ServiceUser, "command"), "for the impostor")

	victim.await("for the victim")
	victim.onlyReceived("for the victim")
	impostor.await("for the impostor")
	impostor.onlyReceived("for the impostor")
}

func connectsWithoutALogin(w world) {
	service := w.service().mustDial(w.t)
	service.subscribe(all("ack"))
	for _, wrong := range []login{
		{url: w.broker.UnitsURL(), id: w.attacker},
		{url: w.broker.UnitsURL(), id: w.attacker, user: w.attacker},
		{url: w.broker.UnitsURL(), id: w.attacker, user: w.attacker, password: "wrong"},
		{url: w.broker.UnitsURL(), id: w.attacker, user: w.attacker, password: passwordOf(w.victim)},
		{url: w.broker.UnitsURL(), id: w.attacker, user: "unknown", password: passwordOf(w.attacker)},
		{url: w.broker.UnitsURL(), id: w.attacker, user: "+", password: passwordOf(w.attacker)},
		{url: w.broker.ServiceURL(), id: "x"},
		{url: w.broker.ServiceURL(), id: "x", user: mosquitto.ServiceUser},
		{url: w.broker.ServiceURL(), id: "x", user: mosquitto.ServiceUser, password: "wrong"},
	} {
		intrude(w, wrong)
	}
	genuine := w.unit(w.attacker).mustDial(w.t)
	genuine.publish(topic(w.attacker, "ack"), "genuine")
	service.await("genuine")
	service.onlyReceived("genuine")
}

func usesTheOtherListener(w world) {
	service := w.service().mustDial(w.t)
	service.subscribe(all("ack"))

	unit := w.unit(w.attacker)
	unit.url, unit.id = w.broker.ServiceURL(), w.victim
	intrude(w, unit)
	account := w.service()
	account.url, account.id = w.broker.UnitsURL(), "x"
	intrude(w, account)

	genuine := w.unit(w.attacker).mustDial(w.t)
	genuine.publish(topic(w.attacker, "ack"), "genuine")
	service.await("genuine")
	service.onlyReceived("genuine")
}

// intrude tries a login that must be refused, and uses the connection if it is accepted.
func intrude(w world, l login) {
	w.t.Helper()
	intruder, err := l.dial(w.t)
	if err != nil {
		return
	}
	w.t.Errorf("user %q with the password %q connected, want it refused", l.user, l.password)
	intruder.publish(topic(w.attacker, "ack"), "intruded")
}

func sendsTooMuch(w world) {
	attacker, service := w.unit(w.attacker).mustDial(w.t), w.service().mustDial(w.t)
	service.subscribe(all("telemetry"))

	largest := strings.Repeat("x", 128<<10)
	attacker.publish(topic(w.attacker, "telemetry"), largest+"x")
	attacker.publish(topic(w.attacker, "telemetry"), largest)

	service.await(largest)
	service.onlyReceived(largest)
}
