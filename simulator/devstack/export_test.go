package devstack

// OutsideOf returns the folder that the tests must remove.
func OutsideOf(dir string) string {
	if real, err := realPath(dir); err == nil {
		dir = real
	}
	return outsideOf(dir)
}

// StartRedisOn and StartMosquittoOn start a server on a given port.
func StartRedisOn(dir string, port int) (*Redis, error) {
	program, err := findProgram(RedisServer)
	if err != nil {
		return nil, err
	}
	return startRedisOn(program, dir, port, nil)
}

func StartMosquittoOn(cfg MosquittoConfig, unitsPort, servicePort int) (*Mosquitto, error) {
	program, err := findProgram(MosquittoServer)
	if err != nil {
		return nil, err
	}
	return startMosquittoOn(program, cfg, []int{unitsPort, servicePort, 0})
}

var OnFreePorts = onFreePorts[int]
