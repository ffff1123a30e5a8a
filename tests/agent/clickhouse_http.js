// SPDX-License-Identifier: BSD-2-Clause
// ClickHouse's HTTP interface, as far as the agent and the checks use it, before the real engine
// (npm package chdb, found by NODE_PATH).
// clickhouse_http.js DIRECTORY: prints its port. POST /?query=...&SETTING=...&param_NAME=...: the
// body is the data of an INSERT, or the query. With $PASSWORD, requests without it are refused.
const http = require('http');
const zlib = require('zlib');
const { Session } = require('chdb');

const session = new Session(process.argv[2]);

function withSettings(query, params) {
	const settings = [...params]
		.filter(([k]) => k !== 'query' && k !== 'database' && !k.startsWith('param_'))
		.map(([k, v]) => `${k}='${v.replace(/'/g, '')}'`);
	if (!settings.length || !/ FORMAT /.test(query))
		return query;
	return query.replace(' FORMAT ', ` SETTINGS ${settings.join(', ')} FORMAT `);
}

function setParameters(params) {
	for (const [k, v] of params)
		if (k.startsWith('param_'))
			session.query(`SET ${k} = '${v.replace(/[\\']/g, '\\$&')}'`);
}

http.createServer((req, res) => {
	const parts = [];
	req.on('data', (d) => parts.push(d));
	req.on('end', () => {
		const params = new URL(req.url, 'http://x').searchParams;
		let body = Buffer.concat(parts);
		try {
			if (process.env.PASSWORD &&
				req.headers['x-clickhouse-key'] !== process.env.PASSWORD)
				throw new Error('Code: 516. DB::Exception: Authentication failed');
			setParameters(params);
			if (req.headers['content-encoding'] === 'gzip')
				body = zlib.gunzipSync(body);
			const query = withSettings(params.get('query') || '', params);
			const text = session.query(query ? `${query}\n${body}` : `${body}`,
				'JSONCompactEachRow');
			res.writeHead(200);
			res.end(text);
		} catch (e) {
			res.writeHead(500);
			res.end(`${e.message || e}`);
		}
	});
}).listen(0, '127.0.0.1', function () {
	console.log(this.address().port);
});
