// A worker for `redlock-sim drive`: locks with a small Redlock, and reports to the observer.
//
// Go's standard library is enough. To judge your own client, replace the type `Redlock` with calls to
// it; keep `observer` and `main`.
package main

import (
	"bufio"
	cryptorand "crypto/rand"
	"encoding/hex"
	"fmt"
	"log"
	"math/rand"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

var (
	clientName = os.Getenv("DRIVE_CLIENT")
	addresses  = strings.Split(os.Getenv("DRIVE_NODES"), ",")
	resource   = os.Getenv("DRIVE_RESOURCE")
	ttlMS      = os.Getenv("DRIVE_TTL_MS")
)

const (
	rounds = 2
	// Time for one acquisition with all its attempts.
	patience = 20 * time.Second
)

// Deletes the key only if it is ours: after our lease it may be another client's.
const releaseScript = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

// ttl is the length of a lease.
func ttl() time.Duration {
	ms, err := strconv.Atoi(ttlMS)
	if err != nil {
		log.Fatal("DRIVE_TTL_MS: ", err)
	}
	return time.Duration(ms) * time.Millisecond
}

// encoded is a request in RESP.
func encoded(words ...string) string {
	request := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		request += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	return request
}

// node is a connection to one node, dialled again after each failure.
type node struct {
	address    string
	connection net.Conn
	replies    *bufio.Reader
}

// ask returns the first line of the reply to a request; "" if it does not come by the time `until`.
func (n *node) ask(until time.Time, words ...string) string {
	introduction := n.connection == nil
	request := encoded(words...)
	if introduction {
		connection, err := net.DialTimeout("tcp", n.address, time.Until(until))
		if err != nil {
			return ""
		}
		n.connection, n.replies = connection, bufio.NewReader(connection)
		// The name tells the masters whose connection it is.
		request = encoded("CLIENT", "SETNAME", clientName) + request
	}
	_ = n.connection.SetDeadline(until)
	_, err := n.connection.Write([]byte(request))
	if err == nil && introduction {
		_, err = n.replies.ReadString('\n')
	}
	reply := ""
	if err == nil {
		reply, err = n.replies.ReadString('\n')
	}
	if err != nil {
		// A reply that still comes would be taken for the next one.
		n.connection.Close()
		n.connection = nil
		return ""
	}
	return strings.TrimSpace(reply)
}

// Redlock is the lock: a majority of the nodes, all asked at once.
type Redlock struct {
	nodes []*node
	ttl   time.Duration
}

func newRedlock(ttl time.Duration) *Redlock {
	lock := &Redlock{ttl: ttl}
	for _, address := range addresses {
		lock.nodes = append(lock.nodes, &node{address: address})
	}
	return lock
}

// ask returns the replies of all nodes; "" for a node that gives none in time.
func (r *Redlock) ask(words ...string) []string {
	// Much less than the lease.
	until := time.Now().Add(r.ttl / 10)
	replies := make([]string, len(r.nodes))
	var all sync.WaitGroup
	for i := range r.nodes {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			replies[i] = r.nodes[i].ask(until, words...)
		}(i)
	}
	all.Wait()
	return replies
}

// acquire makes one attempt; it returns its token if the lock is ours, and "" otherwise.
func (r *Redlock) acquire() string {
	random := make([]byte, 20)
	if _, err := cryptorand.Read(random); err != nil {
		log.Fatal(err)
	}
	token := hex.EncodeToString(random)
	began := time.Now()
	votes := 0
	for _, reply := range r.ask("SET", resource, token, "NX", "PX", ttlMS) {
		if reply == "+OK" {
			votes++
		}
	}
	// The time that passed counts against the lease; a hundredth and 2 ms are for clock drift.
	left := r.ttl - r.ttl/100 - 2*time.Millisecond - time.Since(began)
	if votes > len(r.nodes)/2 && left > 0 {
		return token
	}
	r.release(token)
	return ""
}

func (r *Redlock) release(token string) {
	r.ask("EVAL", releaseScript, "1", resource, token)
}

// observer learns when this worker enters and leaves its critical section.
type observer struct {
	connection net.Conn
	replies    *bufio.Reader
}

func newObserver() *observer {
	connection, err := net.Dial("tcp", os.Getenv("DRIVE_OBSERVER"))
	if err != nil {
		log.Fatal(err)
	}
	return &observer{connection, bufio.NewReader(connection)}
}

func (o *observer) tell(words ...string) {
	fmt.Fprint(o.connection, encoded(words...))
	reply, _ := o.replies.ReadString('\n')
	if strings.TrimSpace(reply) != "+OK" {
		log.Fatalf("the observer refuses %s: %s", strings.Join(words, " "), reply)
	}
}

// acquired attempts until the lock is ours.
func acquired(lock *Redlock, random *rand.Rand) string {
	until := time.Now().Add(patience)
	for time.Now().Before(until) {
		if token := lock.acquire(); token != "" {
			return token
		}
		time.Sleep(10*time.Millisecond + time.Duration(random.Int63n(int64(90*time.Millisecond))))
	}
	log.Fatalf("no lock within %s", patience)
	return ""
}

func main() {
	lock, observer := newRedlock(ttl()), newObserver()
	random := rand.New(rand.NewSource(time.Now().UnixNano()))
	for round := 0; round < rounds; round++ {
		token := acquired(lock, random)
		observer.tell("ENTER", resource, clientName, token)
		// A third of the lease.
		time.Sleep(lock.ttl / 3)
		observer.tell("LEAVE", resource, clientName)
		lock.release(token)
	}
}
