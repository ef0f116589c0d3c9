package app

import (
	"fmt"
	"runtime"
	"syscall"
)

const (
	// reservedFiles is how many open files the service keeps for its listeners, the MQTT broker, the payment processor,
	// other servers and files, in addition to the connections to Postgres and Redis.
	reservedFiles = 150
	// redisConnsPerProcessor is the pool of the Redis library.
	redisConnsPerProcessor = 10
	// healthConnections bounds the health listener; it is part of reservedFiles.
	healthConnections = 50
	// mostConnections bounds the default where files are not limited.
	mostConnections = 1_000_000
)

// reserve is how many open files the public listener must leave for everything else.
func (c Config) reserve() int {
	return reservedFiles + c.DatabaseConns + redisConnsPerProcessor*runtime.NumCPU()
}

// maxConnections returns how many connections the public listener may have open.
func (c Config) maxConnections() (int, error) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	return connectionsWithin(c.MaxConnections, int(min(limit.Cur, mostConnections)), c.reserve())
}

func (c Config) checkMaxConnections() error {
	_, err := c.maxConnections()
	return err
}

// connectionsWithin returns the bound for a setting (0: as many as fit), a limit of open files and a reserve.
func connectionsWithin(setting, files, reserve int) (int, error) {
	room := files - reserve
	switch {
	case setting < 0:
		return 0, fmt.Errorf("--max-connections: %d is negative", setting)
	case room < 1:
		return 0, fmt.Errorf("the limit of open files is %d, and the service needs %d for itself: raise it (ulimit -n)", files, reserve)
	case setting > room:
		return 0, fmt.Errorf("--max-connections: %d and %d that the service needs for itself are more than the limit of open files, %d (ulimit -n)", setting, reserve, files)
	case setting == 0:
		return room, nil
	}
	return setting, nil
}
