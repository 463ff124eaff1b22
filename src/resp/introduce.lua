local info = redis.call('info', 'server') .. redis.call('info', 'replication')
local function of(name)
  local _, colon = string.find(info, name .. ':', 1, true)
  return colon and string.match(info, '^[^\r\n]*', colon + 1) or '-'
end
if of('role') ~= 'master' then return info end
local function refused(why) return info .. 'canary_refused:' .. why .. '\r\n' end

if redis.replicate_commands then redis.replicate_commands() end
local time = redis.pcall('time')
if time.err then return refused(time.err) end
local now = time[1] * 1000000 + time[2]
local canary = redis.pcall('get', KEYS[1])
if type(canary) == 'table' then return refused(canary.err) end

local run, history, memory, written
if canary then
  run, history, memory, written = string.match(canary, '^(%x+) (%S+) (%S+) (%d+)$')
  if not run then return refused('a value of somebody else') end
end
local is_ours = run == of('run_id')
local is_history = history == of('master_replid') or of('second_repl_offset') == '-1'
if not (canary and is_ours and is_history and tonumber(written) <= now) then
  written = string.format('%.0f', now)
  history = of('master_replid')
  memory = memory or of('run_id') .. '-' .. written
  canary = of('run_id') .. ' ' .. history .. ' ' .. memory .. ' ' .. written
  local set = redis.pcall('set', KEYS[1], canary)
  if set.err then return refused(set.err) end
end
local age = string.format('%.0f', now - tonumber(written))
return info .. 'canary:' .. history .. ' ' .. memory .. ' ' .. age .. '\r\n'
