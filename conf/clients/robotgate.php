<?php
// Sends PHP's streams (file_get_contents, fopen) through the proxy that https_proxy names. Without this, they ignore the
// variable. If a script opens a stream with its own context, it has to name the proxy in that context.
// `robotgate env --write DIR php` writes this file, and a part of php.ini that prepends it to every script.
(static function (): void {
    $url = getenv('https_proxy') ?: getenv('http_proxy');
    $proxy = $url ? parse_url($url) : false;
    if (!isset($proxy['host'])) {
        return;
    }
    $over = ($proxy['scheme'] ?? 'http') === 'https' ? 'ssl' : 'tcp';
    $port = $proxy['port'] ?? ($over === 'ssl' ? 443 : 80);
    $http = ['proxy' => "$over://{$proxy['host']}:$port", 'request_fulluri' => true];
    if (isset($proxy['user'])) {
        $user = rawurldecode($proxy['user']) . ':' . rawurldecode($proxy['pass'] ?? '');
        $http['header'] = 'Proxy-Authorization: Basic ' . base64_encode($user);
    }
    stream_context_set_default(['http' => $http]);
})();
