-- The tables that SQL users know (REQUIREMENTS D3). Times are text in UTC with milliseconds, so that they compare with
-- datetime('now', '-15 minutes'). They cover live and finished rows, and cost nothing while nobody asks.

-- A contact as people know it: the phone in digits (one that a provider confirmed first), or the id.
CREATE VIEW contato_de AS
SELECT contact.id AS contact,
       coalesce(
           (SELECT value FROM identity WHERE identity.contact = contact.id AND kind = 0 ORDER BY confirmed DESC, value LIMIT 1),
           lower(substr(hex(contact.id), 1, 8) || '-' || substr(hex(contact.id), 9, 4) || '-' || substr(hex(contact.id), 13, 4)
                 || '-' || substr(hex(contact.id), 17, 4) || '-' || substr(hex(contact.id), 21))
       ) AS contato
FROM contact;

CREATE VIEW tarefas AS
SELECT task.id AS tarefa_id,
       (SELECT contato FROM contato_de WHERE contato_de.contact = task.contact) AS contato,
       coalesce(task.cadence, task.message) AS motivo,
       task.touch_no AS toque,
       CASE task.status
           WHEN 'scheduled' THEN 'agendada' WHEN 'sending' THEN 'enviando' WHEN 'sent' THEN 'enviada'
           WHEN 'failed' THEN 'falha' WHEN 'cancelled' THEN 'cancelada' WHEN 'dead' THEN 'morta'
           WHEN 'held' THEN 'retida' WHEN 'unsure' THEN 'incerta'
       END AS status,
       strftime('%Y-%m-%d %H:%M:%f', task.scheduled_for / 1000.0, 'unixepoch') AS agendada_para,
       task.attempts AS tentativas,
       strftime('%Y-%m-%d %H:%M:%f', task.next_attempt_at / 1000.0, 'unixepoch') AS proxima_em,
       task.last_error AS ultimo_erro,
       task.order_txn AS referencia,
       strftime('%Y-%m-%d %H:%M:%f', task.created_at / 1000.0, 'unixepoch') AS criada_em,
       strftime('%Y-%m-%d %H:%M:%f', task.updated_at / 1000.0, 'unixepoch') AS atualizada_em
FROM task;

CREATE VIEW conversas AS
SELECT (SELECT contato FROM contato_de WHERE contato_de.contact = conversation.contact) AS contato,
       conversation.offer AS oferta,
       conversation.state AS estado,
       conversation.version AS versao,
       strftime('%Y-%m-%d %H:%M:%f', conversation.deadline_at / 1000.0, 'unixepoch') AS prazo_em,
       strftime('%Y-%m-%d %H:%M:%f', contact.paused_until / 1000.0, 'unixepoch') AS bot_pausado_ate
FROM conversation JOIN contact ON contact.id = conversation.contact;

CREATE VIEW transicoes AS
SELECT (SELECT contato FROM contato_de WHERE contato_de.contact = transition_log.contact) AS contato,
       transition_log.from_state AS de,
       transition_log.event AS evento,
       transition_log.to_state AS para,
       strftime('%Y-%m-%d %H:%M:%f', transition_log.at / 1000.0, 'unixepoch') AS quando
FROM transition_log;

CREATE VIEW fluxo_batimento AS
SELECT flow AS fluxo, strftime('%Y-%m-%d %H:%M:%f', seen_at / 1000.0, 'unixepoch') AS visto_em FROM heartbeat;

-- Gate keys under their scope, deliveries under their source, with the three words that such tables use everywhere.
CREATE VIEW idempotency_keys AS
SELECT scope, key AS idempotency_key,
       strftime('%Y-%m-%d %H:%M:%f', first_seen_at / 1000.0, 'unixepoch') AS first_seen_at, status, metadata
FROM gate_key
UNION ALL
SELECT source, key, strftime('%Y-%m-%d %H:%M:%f', received_at / 1000.0, 'unixepoch'),
       CASE WHEN status = 'received' THEN 'PROCESSING'
            WHEN status IN ('decided', 'ignored', 'discarded') THEN 'COMPLETED' ELSE 'FAILED' END,
       json_object('type', kind, 'duplicates', duplicates)
FROM event;

CREATE VIEW eventos AS
SELECT lower(substr(hex(event.id), 1, 8) || '-' || substr(hex(event.id), 9, 4) || '-' || substr(hex(event.id), 13, 4)
             || '-' || substr(hex(event.id), 17, 4) || '-' || substr(hex(event.id), 21)) AS evento_id,
       event.source AS fonte,
       event.kind AS tipo,
       event.key AS chave,
       event.status AS status,
       event.reason AS motivo,
       event.result AS resultado,
       event.duplicates AS repeticoes,
       (SELECT contato FROM contato_de WHERE contato_de.contact = event.contact) AS contato,
       strftime('%Y-%m-%d %H:%M:%f', event.occurred_at / 1000.0, 'unixepoch') AS ocorrido_em,
       strftime('%Y-%m-%d %H:%M:%f', event.received_at / 1000.0, 'unixepoch') AS recebido_em,
       strftime('%Y-%m-%d %H:%M:%f', event.completed_at / 1000.0, 'unixepoch') AS concluido_em
FROM event;
