-- Appends an entry to a log, and removes what there is no room for then.
-- KEYS: log, then of the table its logs' expiries, entries, order, bytes by owner, number by owner, usage
-- ARGV: log, owner, entry, expiry in ms, position, the log's entries and bytes,
--       the table's logs and bytes, the owner's logs and bytes, what the keys of logs begin with
-- Returns 0, -1 if the entry is too large, or the position that the next entry must have.
local list, expiries, entries, order, bytes_of, count_of, usage = unpack(KEYS)
local log, owner, entry, ttl, position = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local log_entries, log_bytes = tonumber(ARGV[6]), tonumber(ARGV[7])
local max_logs, max_bytes = tonumber(ARGV[8]), tonumber(ARGV[9])
local own_logs, own_bytes, prefix = tonumber(ARGV[10]), tonumber(ARGV[11]), ARGV[12]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function count(key, member, by)
  if by ~= 0 and tonumber(redis.call('ZINCRBY', key, by, member)) <= 0 then redis.call('ZREM', key, member) end
end

local function charge(whose, logs, size)
  count(count_of, whose, logs)
  count(bytes_of, whose, size)
  if size ~= 0 then redis.call('HINCRBY', usage, 'bytes', size) end
end

-- the last position of a log, its size, when something was appended last, and its owner
local function read(of)
  local text = redis.call('HGET', entries, of)
  if not text then return nil end
  local last, size, at, whose = string.match(text, '^(%d+) (%d+) (%d+) (.*)$')
  return tonumber(last), tonumber(size), at, whose
end

local function place(whose, at, of) return whose .. '\0' .. at .. of end

local function remove(of)
  local _, size, at, whose = read(of)
  if size then
    charge(whose, -1, -size)
    redis.call('ZREM', order, place(whose, at, of))
  end
  redis.call('HDEL', entries, of)
  redis.call('ZREM', expiries, of)
  redis.call('DEL', prefix .. ':' .. of)
end

local function expire()
  local gone = redis.call('ZRANGEBYSCORE', expiries, '-inf', now, 'LIMIT', 0, 200)
  for _, of in ipairs(gone) do remove(of) end
  return #gone == 200
end

local more = expire()
local last, size, at, whose = read(log)
if last and redis.call('LLEN', list) == 0 then
  remove(log)
  last = nil
end
if last and last + 1 ~= position then return last + 1 end
local added = string.len(entry)
if added > math.min(log_bytes, own_bytes, max_bytes) or math.min(own_logs, max_logs) == 0 then return -1 end

local function used(key, member) return tonumber(redis.call('ZSCORE', key, member) or 0) end
local function total_bytes() return tonumber(redis.call('HGET', usage, 'bytes') or 0) end

if last then
  redis.call('ZREM', order, place(whose, at, log))
else
  size, whose = 0, owner
  charge(whose, 1, 0)
end
at = string.format('%016d', redis.call('HINCRBY', usage, 'clock', 1))
size = size + added
charge(whose, 0, added)
local length = redis.call('RPUSH', list, entry)
redis.call('ZADD', order, 0, place(whose, at, log))
redis.call('ZADD', expiries, now + ttl, log)

-- removes the oldest entry unless it is the only one
local function drop_first()
  if length <= 1 then return false end
  local gone = string.len(redis.call('LPOP', list))
  length, size = length - 1, size - gone
  charge(whose, 0, -gone)
  return true
end

-- the same of another log
local function drop_first_of(other)
  local key = prefix .. ':' .. other
  if redis.call('LLEN', key) <= 1 then return false end
  local other_last, other_size, other_at, other_owner = read(other)
  local gone = string.len(redis.call('LPOP', key))
  redis.call('HSET', entries, other,
    string.format('%.0f %.0f %s %s', other_last, other_size - gone, other_at, other_owner))
  charge(other_owner, 0, -gone)
  return true
end

-- removes the log of an owner that nothing was appended to for longest, other than this one; of its only log, the oldest
-- entry, if that helps
local function evict(of, beyond_count)
  local own = redis.call('ZRANGEBYLEX', order, '[' .. of .. '\0', '(' .. of .. '\1', 'LIMIT', 0, 2)
  for n, member in ipairs(own) do own[n] = string.sub(member, string.len(of) + 18) end
  if #own == 1 and not beyond_count then
    if own[1] == log then return drop_first() end
    if drop_first_of(own[1]) then return true end
  end
  for _, other in ipairs(own) do
    if other ~= log then
      remove(other)
      return true
    end
  end
  return false
end

while (length > log_entries or size > log_bytes) and drop_first() do end
while true do
  local beyond_count = used(count_of, whose) > own_logs
  if not beyond_count and used(bytes_of, whose) <= own_bytes then break end
  if not evict(whose, beyond_count) then break end
end
while true do
  local key = nil
  if total_bytes() > max_bytes then key = bytes_of
  elseif redis.call('HLEN', entries) + (last and 0 or 1) > max_logs then key = count_of end
  if not key then break end
  if more then
    more = expire()
  elseif not evict(redis.call('ZREVRANGE', key, 0, 0)[1], key == count_of) then
    break
  end
end

redis.call('HSET', entries, log, string.format('%.0f %.0f %s %s', position, size, at, whose))
redis.call('PEXPIRE', list, ttl)
for _, of in ipairs({ expiries, entries, order, bytes_of, count_of, usage }) do
  if redis.call('PTTL', of) < ttl then redis.call('PEXPIRE', of, ttl) end
end
return 0
