package devstack

import (
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
	// clusterTimeout is after how long without a word the nodes take one for failed.
	clusterTimeout = 2 * time.Second
	clusterWithin  = 30 * time.Second // of being formed
)

// StartRedisCluster returns when all slots are served and each master has its replica. A part that
// has failed leaves the others serving.
func StartRedisCluster(dir string, masters int) (*RedisCluster, error) {
	program, err := findProgram(RedisServer)
	if err != nil {
		return nil, err
	}
	c := &RedisCluster{}
	for i := range 2 * masters {
		folder, err := filepath.Abs(filepath.Join(dir, strconv.Itoa(i)))
		if err == nil {
			err = os.MkdirAll(folder, 0o700)
		}
		var node *Redis
		if err == nil {
			node, err = onFreePorts(2, func(ports []int) (*Redis, error) {
				return startRedisOn(program, folder, ports[0], "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(ports[1]),
					"--cluster-node-timeout", strconv.FormatInt(clusterTimeout.Milliseconds(), 10), "--cluster-require-full-coverage", "no")
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
		if err := within(clusterWithin, "a replica knows its master", func() error {
			_, err := replica.cli("cluster", "replicate", strings.TrimSpace(id))
			return err
		}); err != nil {
			return err
		}
	}
	for i, node := range c.nodes() {
		if err := within(clusterWithin, fmt.Sprintf("node %d is ready", i), func() error {
			info, err := node.cli("cluster", "info")
			if err == nil && !strings.Contains(info, "cluster_state:ok") {
				err = errors.New(info)
			}
			if i < len(c.Masters) && err == nil {
				if info, err = node.cli("info", "replication"); err == nil && !strings.Contains(info, "state=online") {
					err = errors.New(info)
				}
			}
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// within tries until it succeeds, or the time is over.
func within(limit time.Duration, what string, try func() error) error {
	for deadline := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
		err := try()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %v: %w", what, limit, err)
		}
	}
}

// cli gives one server a command.
func (r *Redis) cli(args ...string) (string, error) {
	out, err := exec.Command("redis-cli", append([]string{"-h", "127.0.0.1", "-p", strconv.Itoa(r.port)}, args...)...).Output()
	text := string(out)
	if err == nil && (strings.HasPrefix(text, "ERR") || strings.HasPrefix(text, "(error)")) {
		err = errors.New(strings.TrimSpace(text))
	}
	if err != nil {
		return "", fmt.Errorf("redis-cli %s: %w", strings.Join(args, " "), err)
	}
	return text, nil
}

// URL is where clients connect.
func (c *RedisCluster) URL() string {
	query := url.Values{}
	for _, node := range c.nodes()[1:] {
		query.Add("addr", fmt.Sprintf("127.0.0.1:%d", node.port))
	}
	return fmt.Sprintf("redis://127.0.0.1:%d?%s", c.Masters[0].port, query.Encode())
}

// Close ends every node.
func (c *RedisCluster) Close() error {
	var failures []error
	for _, node := range c.nodes() {
		failures = append(failures, node.Close())
	}
	return errors.Join(failures...)
}

// IsMaster reports whether a node serves slots.
func (r *Redis) IsMaster() bool {
	role, err := r.cli("role")
	return err == nil && strings.HasPrefix(role, "master")
}
