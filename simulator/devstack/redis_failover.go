package devstack

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// RedisCluster is a Redis Cluster on 127.0.0.1: masters that share the slots out in equal ranges,
// and a replica of each. It needs redis-server 7 and redis-cli.
type RedisCluster struct {
	Masters, Replicas []*Redis // the replica of a master has its index
}

const (
	clusterSlots = 16384
	// clusterTimeout is the silence after which the nodes consider one as failed.
	clusterTimeout = 2 * time.Second
)

// StartRedisCluster returns when all slots are served and each master has its replica. If a part
// fails, the others continue to serve. Where secured is not nil, all speak TLS alone, between the
// nodes, too.
func StartRedisCluster(dir string, masters int, secured *ServerTLS) (*RedisCluster, error) {
	c := &RedisCluster{}
	for i := range 2 * masters {
		program, folder, err := redisIn(filepath.Join(dir, strconv.Itoa(i)))
		var node *Redis
		if err == nil {
			node, err = onFreePorts(2, func(ports []int) (*Redis, error) {
				return startRedisOn(
					program, folder, ports[0], secured, "--cluster-enabled", "yes", "--cluster-port",
					strconv.Itoa(ports[1]), "--cluster-node-timeout",
					strconv.FormatInt(clusterTimeout.Milliseconds(), 10), "--cluster-require-full-coverage", "no",
				)
			})
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("start node %d of a redis cluster: %w", i, err), c.Close())
		}
		if i < masters {
			c.Masters = append(c.Masters, node)
		} else {
			c.Replicas = append(c.Replicas, node)
		}
	}
	if err := c.form(); err != nil {
		return nil, errors.Join(fmt.Errorf("form a redis cluster: %w", err), c.Close())
	}
	return c, nil
}

func (c *RedisCluster) nodes() []*Redis {
	return append(append([]*Redis{}, c.Masters...), c.Replicas...)
}

// form shares the slots out and makes the nodes known to each other.
func (c *RedisCluster) form() error {
	first := c.Masters[0]
	for i, master := range c.Masters {
		from, to := i*clusterSlots/len(c.Masters), (i+1)*clusterSlots/len(c.Masters)-1
		if _, err := master.cli("cluster", "addslotsrange", strconv.Itoa(from), strconv.Itoa(to)); err != nil {
			return err
		}
		// As redis-cli does: masters with equal epochs agree on different ones later, and one that
		// is killed meanwhile may not be replaced.
		if _, err := master.cli("cluster", "set-config-epoch", strconv.Itoa(i+1)); err != nil {
			return err
		}
	}
	for _, node := range c.nodes()[1:] {
		bus, err := node.cli("config", "get", "cluster-port")
		if err != nil {
			return err
		}
		if _, err := first.cli("cluster", "meet", "127.0.0.1", strconv.Itoa(node.port), strings.Fields(bus)[1]); err != nil {
			return err
		}
	}
	for i, replica := range c.Replicas {
		id, err := c.Masters[i].cli("cluster", "myid")
		if err != nil {
			return err
		}
		if err := within("a replica knows its master", func() error {
			_, err := replica.cli("cluster", "replicate", strings.TrimSpace(id))
			return err
		}); err != nil {
			return err
		}
	}
	for i, node := range c.nodes() {
		if err := within(fmt.Sprintf("node %d is ready", i), func() error {
			info, err := node.cli("cluster", "info")
			if err == nil && !strings.Contains(info, "cluster_state:ok") {
				err = errors.New(info)
			}
			if i < len(c.Masters) && err == nil {
				err = node.hasReplica()
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// formedWithin is how long servers may take until they serve together.
const formedWithin = time.Minute

// within tries until it succeeds, or formedWithin is over.
func within(what string, try func() error) error {
	for deadline := time.Now().Add(formedWithin); ; time.Sleep(50 * time.Millisecond) {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %v: %w", what, formedWithin, err)
		}
	}
}

// URL is where clients connect.
func (c *RedisCluster) URL() string {
	query := url.Values{}
	for _, node := range c.nodes()[1:] {
		query.Add("addr", node.address())
	}
	return redisScheme(c.Masters[0].secured) + c.Masters[0].address() + "?" + query.Encode()
}

// Close ends every node.
func (c *RedisCluster) Close() error {
	var failures []error
	for _, node := range c.nodes() {
		failures = append(failures, node.Close())
	}
	return errors.Join(failures...)
}

// RedisSentinel is a Redis with a replica on 127.0.0.1, and three Sentinels that make the replica
// the master when the master has failed. It needs redis-server and redis-cli.
type RedisSentinel struct {
	Master, Replica *Redis

	sentinels []*sentinel
	secured   *ServerTLS
}

type sentinel struct {
	*child
	port int
}

const (
	sentinels      = 3
	sentinelQuorum = 2
	sentinelMaster = "motorpool"
	// sentinelDown is the silence after which the Sentinels consider the master as failed.
	sentinelDown = time.Second
)

// StartRedisSentinel returns when each Sentinel knows the others and the replica. Where secured is
// not nil, all speak TLS alone, between the servers, too.
func StartRedisSentinel(dir string, secured *ServerTLS) (*RedisSentinel, error) {
	s := &RedisSentinel{secured: secured}
	if err := s.start(dir); err != nil {
		return nil, errors.Join(fmt.Errorf("start redis with sentinels: %w", err), s.Close())
	}
	return s, nil
}

func (s *RedisSentinel) start(dir string) (err error) {
	if s.Master, err = StartRedis(filepath.Join(dir, "master"), s.secured); err != nil {
		return err
	}
	master := []string{"--replicaof", "127.0.0.1", strconv.Itoa(s.Master.port)}
	if s.Replica, err = StartRedis(filepath.Join(dir, "replica"), s.secured, master...); err != nil {
		return err
	}
	if err := within("the replica has the master's data", s.Master.hasReplica); err != nil {
		return err
	}
	for i := range sentinels {
		one, err := s.startSentinel(filepath.Join(dir, fmt.Sprintf("sentinel-%d", i)))
		if err != nil {
			return err
		}
		s.sentinels = append(s.sentinels, one)
	}
	for _, one := range s.sentinels {
		knows := func() error { return one.knows(s.secured) }
		if err := within("a sentinel knows the others and the replica", knows); err != nil {
			return err
		}
	}
	return nil
}

// startSentinel writes its configuration, which a Sentinel changes.
func (s *RedisSentinel) startSentinel(dir string) (*sentinel, error) {
	program, dir, err := redisIn(dir)
	if err != nil {
		return nil, err
	}
	return onFreePorts(1, func(ports []int) (*sentinel, error) {
		var conf strings.Builder
		listener := append(redisListener(ports[0], s.secured), "--dir", dir)
		for i := 0; i < len(listener); i += 2 {
			fmt.Fprintf(&conf, "%s %s\n", strings.TrimPrefix(listener[i], "--"), listener[i+1])
		}
		fmt.Fprintf(&conf, "sentinel monitor %s 127.0.0.1 %d %d\n", sentinelMaster, s.Master.port, sentinelQuorum)
		fmt.Fprintf(&conf, "sentinel down-after-milliseconds %s %d\n", sentinelMaster, sentinelDown.Milliseconds())
		fmt.Fprintf(&conf, "sentinel failover-timeout %s %d\n", sentinelMaster, (10 * sentinelDown).Milliseconds())
		file := filepath.Join(dir, "sentinel.conf")
		if err := os.WriteFile(file, []byte(conf.String()), 0o600); err != nil {
			return nil, err
		}
		c, err := startChild(context.Background(), childConfig{
			name:    "redis-sentinel",
			command: func() (*exec.Cmd, error) { return exec.Command(program, file, "--sentinel"), nil },
			serving: "+monitor master",
		})
		return &sentinel{c, ports[0]}, err
	})
}

// knows returns nil if the Sentinel has discovered the others and the replica.
func (s *sentinel) knows(secured *ServerTLS) error {
	info, err := redisCLI(s.port, secured, "info", "sentinel")
	known := strings.Contains(info, "status=ok") && strings.Contains(info, fmt.Sprintf("slaves=1,sentinels=%d", sentinels))
	if err == nil && !known {
		err = errors.New(info)
	}
	return err
}

// URL is where clients connect.
func (s *RedisSentinel) URL() string {
	query := url.Values{"master_name": {sentinelMaster}}
	for _, one := range s.sentinels[1:] {
		query.Add("addr", fmt.Sprintf("127.0.0.1:%d", one.port))
	}
	return fmt.Sprintf("%s127.0.0.1:%d?%s", redisScheme(s.secured), s.sentinels[0].port, query.Encode())
}

// Close ends every server.
func (s *RedisSentinel) Close() error {
	var failures []error
	for _, one := range s.sentinels {
		failures = append(failures, one.Close())
	}
	for _, server := range []*Redis{s.Replica, s.Master} {
		if server != nil {
			failures = append(failures, server.Close())
		}
	}
	return errors.Join(failures...)
}
