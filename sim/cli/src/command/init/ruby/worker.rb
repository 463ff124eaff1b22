# frozen_string_literal: true

# A worker for `redlock-sim drive`: locks with a small Redlock, and reports to the observer.
#
# Ruby's standard library is enough. To judge your own client, replace the class `Redlock` with calls to
# it; keep `Observer` and `main`.

require 'securerandom'
require 'socket'

CLIENT = ENV.fetch('DRIVE_CLIENT')
NODES = ENV.fetch('DRIVE_NODES').split(',')
OBSERVER = ENV.fetch('DRIVE_OBSERVER')
RESOURCE = ENV.fetch('DRIVE_RESOURCE')
TTL_MS = Integer(ENV.fetch('DRIVE_TTL_MS'))

ROUNDS = 2
# Time in the critical section, a third of the lease.
HOLD_S = TTL_MS / 1000.0 / 3
# Time for the replies of all nodes, much less than the lease.
REPLIES_S = TTL_MS / 1000.0 / 10
# Time for one acquisition with all its attempts.
PATIENCE_S = 20

# Deletes the key only if it is ours: after our lease it may be another client's.
RELEASE = "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"

# Seconds on a clock that nobody sets.
def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

# A request in RESP.
def encoded(*words)
  parts = words.map { |word| "$#{word.to_s.bytesize}\r\n#{word}\r\n" }
  "*#{parts.length}\r\n#{parts.join}"
end

# A connection to one node, dialled again after each failure.
class Node
  def initialize(address)
    @host, @port = address.split(':')
    @socket = nil
    @introduced = false
  end

  # Sends a request; true if it was sent.
  def send_request(*words)
    request = encoded(*words)
    if @socket.nil?
      @socket = Socket.tcp(@host, @port, connect_timeout: REPLIES_S)
      # The name tells the masters whose connection it is.
      request = encoded('CLIENT', 'SETNAME', CLIENT) + request
      @introduced = false
    end
    @socket.write(request)
    true
  rescue SystemCallError, IOError
    close
    false
  end

  # The reply to the request: its first line; nil if it does not come by `limit`.
  def reply(limit)
    unless @introduced
      line(limit)
      @introduced = true
    end
    line(limit)
  rescue SystemCallError, IOError
    # A reply that still comes would be taken for the next one.
    close
    nil
  end

  private

  def line(limit)
    text = +''
    until text.end_with?("\r\n")
      raise IOError, 'no reply' unless @socket.wait_readable([0.001, limit - now].max)

      text << (@socket.getc || raise(EOFError))
    end
    text.strip
  end

  def close
    @socket&.close
    @socket = nil
  end
end

# The lock: a majority of the nodes, all asked at once.
class Redlock
  def initialize
    @nodes = NODES.map { |address| Node.new(address) }
  end

  # One attempt; its token if the lock is ours.
  def acquire
    token = SecureRandom.hex(20)
    began = now
    replies = ask('SET', RESOURCE, token, 'NX', 'PX', TTL_MS)
    # The time that passed counts against the lease; a hundredth and 2 ms are for clock drift.
    left = TTL_MS / 1000.0 * 0.99 - 0.002 - (now - began)
    return token if replies.count('+OK') > @nodes.length / 2 && left.positive?

    release(token)
    nil
  end

  def release(token)
    ask('EVAL', RELEASE, 1, RESOURCE, token)
  end

  private

  # The replies of all nodes; nil for a node that gives none in time.
  def ask(*words)
    limit = now + REPLIES_S
    sent = @nodes.select { |node| node.send_request(*words) }
    sent.map { |node| node.reply(limit) }
  end
end

# Learns when this worker enters and leaves its critical section.
class Observer
  def initialize
    @socket = TCPSocket.new(*OBSERVER.split(':'))
  end

  def tell(*words)
    @socket.write(encoded(*words))
    reply = @socket.gets.to_s.strip
    abort "the observer refuses #{words.join(' ')}: #{reply}" if reply != '+OK'
  end
end

# Attempts until the lock is ours.
def acquired(redlock)
  limit = now + PATIENCE_S
  while now < limit
    token = redlock.acquire
    return token unless token.nil?

    sleep(rand(0.01..0.1))
  end
  abort "no lock within #{PATIENCE_S} s"
end

def main
  redlock = Redlock.new
  observer = Observer.new
  ROUNDS.times do
    token = acquired(redlock)
    observer.tell('ENTER', RESOURCE, CLIENT, token)
    sleep(HOLD_S)
    observer.tell('LEAVE', RESOURCE, CLIENT)
    redlock.release(token)
  end
end

main
