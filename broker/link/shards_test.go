package link_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/broker/brokertest"
	"motorpool/broker/link"
	"motorpool/broker/link/linktest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// startShards runs links with shards until the test ends.
func startShards(t *testing.T, to link.Receiver, shards ...[]string) *link.Shards {
	t.Helper()
	s := link.NewShards(link.Config{
		Username: mosquitto.ServiceUser, Password: linktest.ServicePassword,
		Group:          func(context.Context) (string, error) { return "motorpool-0123456789abcdef", nil },
		Units:          only(unit),
		ConnectTimeout: 2 * time.Second, KeepAlive: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}, shards...)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		assert.NoError(t, s.Run(ctx, to), "Run")
	})
	t.Cleanup(func() { stop(); running.Wait() })
	return s
}

// shardedUnit is a unit with a connection to each of two shards that counts the commands at each.
type shardedUnit struct {
	*testing.T
	shards   *link.Shards
	clients  [2]mqtt.Client
	commands [2]atomic.Int64
	heard    [2]int64
}

// publish publishes a command, and checks at which shards the unit gets it.
func (u *shardedUnit) publish(repeated bool, at ...int) {
	u.Helper()
	c := command([]byte("lock"))
	c.Unit, c.Repeated = unit, repeated
	require.NoError(u, u.shards.Publish(c))
	for _, shard := range at {
		u.heard[shard]++
	}
	heard := func() [2]int64 { return [2]int64{u.commands[0].Load(), u.commands[1].Load()} }
	brokertest.Eventually(u.T, 5*time.Second, "the unit has the command", func() bool { return heard() == u.heard })
	time.Sleep(20 * time.Millisecond) // time for further copies
	assert.Equal(u, heard(), u.heard, "commands to the unit at the shards")
}

// say publishes a message of the unit, and waits until the service has it.
func (u *shardedUnit) say(to *receiver, shard int, channel v1.Channel, payload string) {
	u.Helper()
	before := to.presence.Load() + to.reports.Load() + to.answers.Load()
	linktest.Publish(u.T, u.clients[shard], channel.Topic(unit), channel == v1.PresenceChannel, payload)
	brokertest.Eventually(u.T, 5*time.Second, "the service has the unit's message", func() bool {
		return to.presence.Load()+to.reports.Load()+to.answers.Load() > before
	})
}

func presence(status telematics.PresenceStatus, session string) string {
	return string(v1.EncodePresence(telematics.Presence{Status: status, Session: session, At: time.Now()}))
}

func TestShards_CommandGoesToTheShardOfTheUnitsLastMessage(t *testing.T) {
	t.Parallel()
	servers := [2]*devstack.Mosquitto{realMosquitto(t), realMosquitto(t)}
	var to receiver
	u := &shardedUnit{T: t, shards: startShards(t, &to, []string{servers[0].ServiceURL()}, []string{servers[1].ServiceURL()})}
	for i, server := range servers {
		brokertest.Eventually(t, 10*time.Second, "ready", func() bool { return u.shards.Links()[i].AllReady() == nil })
		u.clients[i] = unitClient(t, server.UnitsURL(), &u.commands[i])
	}
	u.publish(false, 0, 1) // no message of it yet: through all shards
	u.say(&to, 1, v1.PresenceChannel, presence(telematics.Online, "session-b"))
	u.publish(false, 1)
	u.publish(true, 0, 1) // retransmitted: the unit may have moved
	u.say(&to, 0, v1.PresenceChannel, presence(telematics.Offline, "session-a"))
	u.publish(false, 1) // the last will of an earlier session moves nothing
	u.say(&to, 0, v1.TelemetryChannel, "{}")
	u.publish(false, 0)
	u.say(&to, 1, v1.AckChannel, "done")
	u.publish(false, 1)

	require.NoError(t, servers[1].Kill())
	brokertest.Eventually(t, 10*time.Second, "the loss is noticed", func() bool { return u.shards.Links()[1].Ready() != nil })
	c := command([]byte("lock"))
	c.Unit = unit
	if err := u.shards.Publish(c); err == nil {
		t.Error("published to a shard where the unit cannot be")
	}
	assert.NoError(t, u.shards.Ready(unit), "refused, although the unit may move to the other shard")
	assert.NoError(t, u.shards.Ready("another"), "refused for a unit that may be at the other shard")
	assert.NoError(t, u.shards.AllReady(), "not ready, although one shard works")
	u.publish(true, 0)
	u.say(&to, 0, v1.PresenceChannel, presence(telematics.Online, "session-c"))
	u.publish(false, 0)

	require.NoError(t, servers[0].Kill())
	brokertest.Eventually(t, 10*time.Second, "no command is accepted without any shard", func() bool {
		return u.shards.AllReady() != nil && u.shards.Ready(unit) != nil && u.shards.Ready("another") != nil
	})
}

// After a restart the retained presence of the shards shows where units are.
func TestShards_RetainedPresenceSetsTheRoutes(t *testing.T) {
	t.Parallel()
	servers := [2]*devstack.Mosquitto{realMosquitto(t), realMosquitto(t)}
	u := &shardedUnit{T: t}
	for i, server := range servers {
		u.clients[i] = unitClient(t, server.UnitsURL(), &u.commands[i])
		linktest.Publish(t, u.clients[i], v1.PresenceChannel.Topic(unit), true, presence(telematics.Online, "session"))
		time.Sleep(2 * time.Millisecond) // then the second is the newer one
	}
	var to receiver
	u.shards = startShards(t, &to, []string{servers[0].ServiceURL()}, []string{servers[1].ServiceURL()})
	brokertest.Eventually(
		t, 10*time.Second, "the presence of both shards",
		func() bool { return to.retained.Load() == 2 && u.shards.Links()[1].Ready() == nil },
	)
	u.publish(false, 1)
}

func TestLink_RetransmitsThroughAllNodesOfAClusterAndWorksWhileOneIsDown(t *testing.T) {
	t.Parallel()
	servers := [2]*devstack.Mosquitto{realMosquitto(t), realMosquitto(t)}
	var to receiver
	s := startShards(t, &to, []string{servers[0].ServiceURL(), servers[1].ServiceURL()})
	ready := func() bool { return s.AllReady() == nil }
	// The two nodes are not connected: a message received from each shows a connection with it.
	hears := func(node int) {
		t.Helper()
		client := linktest.Connect(t, servers[node].UnitsURL(), unit)
		defer client.Disconnect(0)
		before := [2]int64{to.answers.Load(), to.reports.Load()}
		brokertest.Eventually(t, 15*time.Second, fmt.Sprintf("answers and reports are received from node %d", node), func() bool {
			linktest.Publish(t, client, v1.AckChannel.Topic(unit), false, "done")
			linktest.Publish(t, client, v1.TelemetryChannel.Topic(unit), false, "{}")
			return to.answers.Load() > before[0] && to.reports.Load() > before[1]
		})
	}
	brokertest.Eventually(t, 15*time.Second, "ready", ready)
	hears(0)
	hears(1)
	var commands [2]atomic.Int64
	var clients [2]mqtt.Client
	for i, server := range servers {
		clients[i] = unitClient(t, server.UnitsURL(), &commands[i])
	}
	c := command([]byte("lock"))
	for _, c.Repeated = range []bool{false, true} {
		require.NoError(t, s.Publish(c))
		brokertest.Eventually(t, 5*time.Second, "one node has the command, and when it is repeated, both", func() bool {
			one, other := commands[0].Load(), commands[1].Load()
			return one+other == 1 && !c.Repeated || min(one, other) == 1 && max(one, other) == 2
		})
	}
	for _, client := range clients {
		client.Disconnect(0)
	}
	for dead, server := range servers {
		hears(0)
		hears(1)
		require.NoError(t, server.Kill())
		for start := time.Now(); time.Since(start) < 300*time.Millisecond; time.Sleep(5 * time.Millisecond) {
			require.NoError(t, s.Ready(unit), "commands are refused %v after node %d was killed", time.Since(start), dead)
		}
		hears(1 - dead)
		brokertest.Eventually(t, 15*time.Second, "presence comes from the other node", ready)
		require.NoError(t, server.Restart())
	}
}

func TestParseShards(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   [][]string
	}{
		{nil, nil},
		{[]string{"a"}, [][]string{{"a"}}},
		{[]string{"a,b"}, [][]string{{"a", "b"}}},
		{[]string{"a,b", "c"}, [][]string{{"a", "b"}, {"c"}}},
		{[]string{" a,b  c\n"}, [][]string{{"a", "b"}, {"c"}}},
	} {
		assert.DeepEqual(t, link.ParseShards(c.values), c.want, "%q", c.values)
	}
}
